/** Starts the daemon for a first run, in this or a separate process, and sends requests as a browser does. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { ConfigError } from '../../../src/config/mistakes.ts'
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import { createLog } from '../../../src/observability/log.ts'
import type { SetupApply, SetupBroker, SetupHub } from '../../../src/web/server/api/protocol.ts'
import { firstRun, loadUnfinished } from '../../../src/web/server/first-run.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { variables } from '../../support/bridge.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { freePort } from '../../support/ports.ts'
import { ownerOf } from '../../support/start-token.ts'

export const KEY = 'key-canary-of-the-hub'
export const EMBEDDED: SetupBroker = { url: null, username: null, password: null }

export async function emulate(id?: string): Promise<EmulatedHub> {
  const hub = await EmulatedHub.start({ id, keys: { [KEY]: ['hub.app', 'hub.speech'] } })
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
  /** The text of the configuration file; `null`: no file is named. By default, the named file does not exist. */
  readonly file?: string | null
  /** Additional variables without the prefix `HUB2MQTT_`. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Asking {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

type Begun = Awaited<ReturnType<typeof prepare>>

async function prepare({ file, env = {} }: FirstOptions) {
  const path = join(temporaryFolder(), 'hub2mqtt.yaml')
  if (typeof file === 'string') writeFileSync(path, file, { mode: 0o640 })
  const [port, mqttPort] = [await freePort(), await freePort()]
  const all = { HTTP_PORT: String(port), MQTT_EMBEDDED_PORT: String(mqttPort), ...env }
  const ask = async (what: string, { body, headers = {} }: Asking = {}) => {
    const init = body && { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port}/${what}`, {
      ...init,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    })
    const text = await response.text()
    const answer: unknown = text === '' ? null : JSON.parse(text)
    return { status: response.status, headers: response.headers, text, answer }
  }
  const request = {
    env: variables(all),
    ...(file !== null && { file: path }),
  }
  return { path, port, mqttPort, ask, request }
}

/** Starts a daemon as a separate process. */
export async function begin(options: FirstOptions = {}) {
  const begun = await prepare(options)
  const { env, file: config } = begun.request
  const daemon = new BridgeProcess({ env, ...(config !== undefined && { config }) })
  onTestFinished(() => daemon.stop())
  return { ...begun, daemon }
}

/** Loads a configuration without a hub, as the daemon does. @throws ConfigError if a setup would not help */
export async function unfinished(options: FirstOptions = {}) {
  const begun = await prepare(options)
  try {
    loadConfig(begun.request)
  } catch (problem) {
    if (problem instanceof ConfigError) return { ...begun, problem, loaded: loadUnfinished(problem, begun.request) }
    throw problem
  }
  throw new Error('the configuration has hubs')
}

/** Opens the setup page in this process, without a password. Sends requests with the printed token. */
export async function setUp(options: FirstOptions = {}) {
  const { request, loaded, problem, ...begun } = await unfinished(options)
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ level: 'debug', format: 'json', secrets: loaded.secrets, destination })
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const page = Promise.withResolvers<string>()
  let reload = () => {}
  const onReload = (call: () => void) => {
    reload = call
  }
  const { signal } = ending
  const world = { version: '0.0.0-test', clock: systemClock, log, onPage: page.resolve, onReload, signal }
  /** Resolves when the configuration is complete. */
  const ended = firstRun(request, { loaded, problem }, world)
  return { ...asOwner(begun, ownerOf(await page.promise)), lines, ended, reload: () => reload() }
}

/** Waits for the setup page of a separate process. Sends requests with the printed token, if there is no password. */
export async function first(options: FirstOptions = {}) {
  const begun = await begin(options)
  await begun.daemon.untilLine('set it up at')
  const hasPassword = options.env?.['HTTP_PASSWORD'] !== undefined
  return asOwner(begun, hasPassword ? {} : await begun.daemon.owner())
}

function asOwner<B extends Pick<Begun, 'ask'>>(begun: B, owner: Readonly<Record<string, string>>) {
  const ask: Begun['ask'] = (what, asking) => begun.ask(what, { ...asking, headers: { ...owner, ...asking?.headers } })
  return {
    ...begun,
    ask,
    askAsStranger: begun.ask,
    testHub: (hub: SetupHub) => ask('api/setup/test-hub', { body: hub }),
    testBroker: (broker: SetupBroker) => ask('api/setup/test-broker', { body: broker }),
    apply: (wanted: SetupApply) => ask('api/setup/apply', { body: wanted }),
  }
}
