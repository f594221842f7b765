/** Tries a hub and a broker as `hub2mqtt doctor` does, with the same messages. */

import type { Clock } from '../../../base/clock.ts'
import { examineBroker } from '../../../cli/doctor/broker.ts'
import type { Finding } from '../../../cli/doctor/finding.ts'
import { examineHub } from '../../../cli/doctor/hub.ts'
import type { Config, HubConfig } from '../../../config/options.ts'
import { shownText } from '../../../observability/controls.ts'
import { Scrubber } from '../../../observability/scrub.ts'
import type { SetupTest } from '../api/protocol.ts'

/** A user waits for the answer. */
const HUB_TIMEOUT_MS = 5_000

export interface HubTrial {
  readonly name: string
  readonly hub: HubConfig
  readonly config: Config
  readonly clock: Clock
}

export async function tryHub({ name, hub, config, clock }: HubTrial): Promise<SetupTest> {
  const findings: Finding[] = []
  for await (const finding of examineHub({ name, hub: { ...hub, timeout: HUB_TIMEOUT_MS }, config, clock })) {
    findings.push(finding)
  }
  return verdict(findings, [hub.api_key])
}

export async function tryBroker(config: Config, clock: Clock): Promise<SetupTest> {
  return verdict(await examineBroker({ config, clock }), [config.mqtt.password ?? ''])
}

/** The problems, or all findings if there are none. They quote hubs and brokers, which may send anything. */
function verdict(findings: readonly Finding[], secrets: readonly string[]): SetupTest {
  const scrubber = new Scrubber(secrets)
  const problems = findings.filter(({ outcome }) => outcome === 'problem')
  const shown = problems.length === 0 ? findings : problems
  const lines = shown.map(({ text, remedy }) => {
    return shownText(scrubber.text(remedy === undefined ? text : `${text} → ${remedy}`))
  })
  return { ok: problems.length === 0, message: lines.join('\n') }
}
