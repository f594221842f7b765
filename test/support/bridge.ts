/** Runs the daemon in this process, including its configuration. */
import { readFileSync } from 'node:fs'
import { run } from '../../src/app.ts'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createLog } from '../../src/observability/log.ts'
import { ownerOf } from './start-token.ts'

const FILE = 'test.yaml'
const FATAL = ['uncaughtException', 'unhandledRejection'] as const

export interface RunningBridge extends AsyncDisposable {
  readonly lines: string[]
  /** The request header with the rights of the user who started the bridge; never resolves if there is a password. */
  owner(): Promise<{ readonly authorization: string }>
  /** Resolves with the address of the page that the bridge prints for the user who started it. */
  page(): Promise<string>
  /** Stops the bridge as SIGTERM would. */
  stop(): Promise<void>
  /** Changes the configuration file and reloads it, as SIGHUP would. */
  reload(file: string): void
  /** Rejects when the bridge ends, or when an error would terminate a separate process. */
  readonly ended: Promise<never>
}

interface BridgeOptions {
  readonly version?: string
  readonly random?: (() => number) | undefined
  readonly storeUrl?: string | undefined
  /** The path of a configuration file. As for users, it then also configures the page and the log. */
  readonly path?: string
}

/** Adds the prefix to the names of environment variables. */
export const variables = (env: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [`HUB2MQTT_${name}`, value]))

/**
 * @param env the configuration as environment variables, without `HUB2MQTT_`
 * @param file the text of the configuration file
 * @throws ConfigError if the configuration is rejected
 */
export function startBridge(
  env: Readonly<Record<string, string>>,
  file?: string,
  clock: Clock = systemClock,
  { version = '0.0.0-test', random = Math.random, storeUrl, path }: BridgeOptions = {},
): RunningBridge {
  let text = file
  const loadAs = (requireContent: boolean) =>
    loadConfig({
      requireContent,
      // Disable the page, because tests run in parallel and all bridges would use the same port. If a test
      // enables it, store no token: without a configuration file, it would go to the working directory.
      env: {
        ...(path === undefined && { HUB2MQTT_HTTP_ENABLED: 'false', HUB2MQTT_HTTP_TOKEN_FILE: '/dev/null' }),
        ...variables(env),
      },
      file: text === undefined ? path : FILE,
      readFile: (name) => (name === FILE && text !== undefined ? text : readFileSync(name, 'utf8')),
    })
  const loaded = loadAs(false)
  const load = () => loadAs(!loaded.fileIsEmpty)
  const lines: string[] = []
  let readAgain = () => {}
  const written =
    path === undefined ? ({ level: 'debug', format: 'json' } as const) : { ...loaded.config.log, keep: true }
  const log = createLog({ ...written, secrets: loaded.secrets, destination: { write: (line) => lines.push(line) } })
  const ending = new AbortController()
  const page = Promise.withResolvers<string>()
  const running = run({
    ...loaded,
    load,
    onReload: (reload) => {
      readAgain = reload
    },
    version,
    clock,
    random,
    storeUrl,
    log,
    onPage: page.resolve,
    signal: ending.signal,
  })
  const stop = () => {
    ending.abort()
    return running
  }
  const reload = (changed: string) => {
    text = changed
    readAgain()
  }
  const { promise: ended, reject } = Promise.withResolvers<never>()
  for (const promise of [ended, page.promise]) promise.catch(() => undefined)
  for (const event of FATAL) process.on(event, reject)
  const over = (error: unknown) => {
    for (const event of FATAL) process.off(event, reject)
    reject(error)
    page.reject(error)
  }
  running.then(() => over(new Error('the bridge has ended')), over)
  const owner = () => page.promise.then(ownerOf)
  return { lines, owner, page: () => page.promise, stop, reload, ended, [Symbol.asyncDispose]: stop }
}
