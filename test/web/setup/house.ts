/** Runs an unconfigured daemon as a separate process, and sends requests as a browser does. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import type { SetupApply, SetupBroker, SetupHub } from '../../../src/web/server/api/protocol.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { freePort } from '../../support/ports.ts'

export const KEY = 'key-canary-of-the-hub'
export const EMBEDDED: SetupBroker = { url: null, username: null, password: null }

export async function emulate(): Promise<EmulatedHub> {
  const hub = await EmulatedHub.start({ keys: { [KEY]: ['hub.app', 'hub.speech'] } })
  onTestFinished(() => hub[Symbol.asyncDispose]())
  return hub
}

export const at = (url: string, changes: Partial<SetupHub> = {}): SetupHub => ({
  name: 'home',
  url,
  api_key: KEY,
  ...changes,
})

interface FirstOptions {
  /** Text of the configuration file; `null`: no file is named. By default, the named file does not exist. */
  readonly file?: string | null
  /** Additional variables without the prefix `HUB2MQTT_`. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Asking {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

export async function begin({ file, env = {} }: FirstOptions = {}) {
  const path = join(temporaryFolder(), 'hub2mqtt.yaml')
  if (typeof file === 'string') writeFileSync(path, file, { mode: 0o640 })
  const [port, mqttPort] = [await freePort(), await freePort()]
  const all = { HTTP_PORT: String(port), MQTT_EMBEDDED_PORT: String(mqttPort), ...env }
  const daemon = new BridgeProcess({
    env: Object.fromEntries(Object.entries(all).map(([name, value]) => [`HUB2MQTT_${name}`, value])),
    ...(file !== null && { config: path }),
  })
  onTestFinished(() => daemon.stop())
  const url = `http://127.0.0.1:${port}`
  const ask = async (what: string, { body, headers = {} }: Asking = {}) => {
    const init = body && { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${url}/${what}`, {
      ...init,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    })
    const text = await response.text()
    const answer: unknown = text === '' ? null : JSON.parse(text)
    return { status: response.status, headers: response.headers, text, answer }
  }
  return { daemon, path, port, mqttPort, ask }
}

/** Waits for the setup page. Requests have the printed token, unless a password is set. */
export async function first(options?: FirstOptions) {
  const begun = await begin(options)
  await begun.daemon.untilLine('set it up at')
  const owner = options?.env?.['HTTP_PASSWORD'] === undefined ? await begun.daemon.owner() : {}
  const ask: typeof begun.ask = (what, asking) =>
    begun.ask(what, { ...asking, headers: { ...owner, ...asking?.headers } })
  return {
    ...begun,
    ask,
    askAsStranger: begun.ask,
    testHub: (hub: SetupHub) => ask('api/setup/test-hub', { body: hub }),
    testBroker: (broker: SetupBroker) => ask('api/setup/test-broker', { body: broker }),
    apply: (wanted: SetupApply) => ask('api/setup/apply', { body: wanted }),
  }
}
