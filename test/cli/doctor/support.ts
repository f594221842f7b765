import { systemClock } from '../../../src/base/clock.ts'
import { examine, lineOf, reportOf } from '../../../src/cli/doctor/doctor.ts'
import type { Finding } from '../../../src/cli/doctor/finding.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../../src/emulator/hub.ts'
import { startBroker } from '../../support/brokers.ts'
import { closeAtEnd, open } from '../support.ts'

export { closeAtEnd, open }

export const KEY = 'key-of-the-doctor'

export async function emulate(options: EmulatedHubOptions = {}): Promise<EmulatedHub> {
  const hub = await EmulatedHub.start({ keys: { [KEY]: ['hub.app', 'hub.speech'] }, settleMs: 0, ...options })
  return open.adopt(hub, (one) => one.close())
}

export const embedded = async () => open.use(await startBroker('aedes'))

type Variables = Readonly<Record<string, string>>

/** @param variables environment variables without the prefix `HUB2MQTT_` */
export function configured(variables: Variables) {
  const all = { ...(!('HUBS_DIR' in variables) && { HUB_API_KEY: KEY }), ...variables }
  const env = Object.fromEntries(Object.entries(all).map(([name, value]) => [`HUB2MQTT_${name}`, value]))
  return loadConfig({ file: undefined, env })
}

export async function say(variables: Variables, clock = systemClock) {
  const { config, secrets, warnings } = configured(variables)
  const findings: Finding[] = []
  for await (const finding of examine({ config, secrets, warnings, clock })) findings.push(finding)
  const report = reportOf(findings, config, '1.2.3')
  return { findings, report, problems: findings.filter(({ outcome }) => outcome === 'problem').map(lineOf) }
}
