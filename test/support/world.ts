/** A whole world for a test: an emulated hub, a real broker, the bridge as users run it, and a client that looks on. */
import { readFileSync } from 'node:fs'
import type { IClientPublishOptions } from 'mqtt'
import { afterEach } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { createLog } from '../../src/log/log.ts'
import { startEmbeddedBroker } from '../../src/mqtt/embedded.ts'
import { run } from '../../src/run.ts'
import { Mosquitto, mosquittoPath, Observer } from './brokers.ts'
import { until } from './until.ts'

/** The two brokers, and with them the two protocols: the embedded one speaks 3.1.1 only. */
export const BROKERS = mosquittoPath === undefined ? (['aedes'] as const) : (['mosquitto', 'aedes'] as const)
export type BrokerKind = 'mosquitto' | 'aedes'

const FILE = 'test.yaml'
export const KEY = 'key-for-tests'
export const ALL_SCOPES = ['hub.app', 'hub.speech']

export interface Answer {
  readonly ok: boolean
  readonly command: string
  readonly hub: string | null
  readonly app: string | null
  readonly transaction: unknown
  readonly data?: unknown
  readonly error?: { readonly code: string; readonly message: string; readonly status: number | null }
  readonly duration_ms: number
  readonly replayed?: true
}

export interface WorldOptions {
  /** A kind to start one of, or one that is the test's own to stop and start. */
  readonly broker?: BrokerKind | Mosquitto
  /** Of the emulated hub; it has one key with all scopes unless told otherwise. */
  readonly hub?: EmulatedHubOptions
  /** Configuration as environment variables, without `HUB2MQTT_`. */
  readonly env?: Readonly<Record<string, string>>
  /** The same as a file. */
  readonly file?: string
  /** Of the bridge; default the system's. */
  readonly clock?: Clock
  /** Of the client that looks on. */
  readonly login?: { readonly username: string; readonly password: string }
}

export interface Broker extends AsyncDisposable {
  readonly url: string
  readonly port: number
}

export async function startBroker(kind: BrokerKind): Promise<Broker> {
  if (kind === 'mosquitto') return Mosquitto.start({ persistent: true })
  const broker = await startEmbeddedBroker({ host: '127.0.0.1', port: 0, wsPort: null }, silent())
  return Object.assign(broker, { port: Number(new URL(broker.url).port) })
}

function silent() {
  return createLog({ level: 'fatal', format: 'json', secrets: [] })
}

export interface RunningBridge extends AsyncDisposable {
  /** Every line logged, as it was written. */
  readonly lines: string[]
  /** Ends it as SIGTERM would. */
  stop(): Promise<void>
  /** Changes the configuration file and lets it be read again, as SIGHUP would. */
  reload(file: string): void
}

/** The daemon in this process, from its configuration on. */
export function startBridge(
  env: Readonly<Record<string, string>>,
  file?: string,
  clock: Clock = systemClock,
): RunningBridge {
  const variables = Object.fromEntries(Object.entries(env).map(([name, value]) => [`HUB2MQTT_${name}`, value]))
  let text = file
  const load = () =>
    loadConfig({
      // Tests run side by side, and each bridge would take the same port.
      env: { HUB2MQTT_HTTP_ENABLED: 'false', ...variables },
      ...(text !== undefined && { file: FILE }),
      readFile: (path) => (path === FILE && text !== undefined ? text : readFileSync(path, 'utf8')),
    })
  const { config, secrets } = load()
  const lines: string[] = []
  let readAgain = () => {}
  const log = createLog({ level: 'debug', format: 'json', secrets, destination: { write: (line) => lines.push(line) } })
  const ending = new AbortController()
  const running = run({
    config,
    load,
    onReload: (reload) => {
      readAgain = reload
    },
    version: '0.0.0-test',
    clock,
    random: Math.random,
    log,
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
  return { lines, stop, reload, [Symbol.asyncDispose]: stop }
}

export class World implements AsyncDisposable {
  readonly hub: EmulatedHub
  readonly broker: Broker
  readonly observer: Observer
  readonly env: Readonly<Record<string, string>>
  readonly #file: string | undefined
  readonly #clock: Clock | undefined
  bridge: RunningBridge

  private constructor(hub: EmulatedHub, broker: Broker, observer: Observer, options: WorldOptions) {
    this.hub = hub
    this.broker = broker
    this.observer = observer
    this.env = {
      HUB_URL: hub.url,
      HUB_API_KEY: KEY,
      HUB_POLL_INTERVAL: '2s',
      HUB_POLL_INTERVAL_FALLBACK: '1s',
      MQTT_URL: broker.url,
      ...options.env,
    }
    this.#file = options.file
    this.#clock = options.clock
    this.bridge = startBridge(this.env, this.#file, this.#clock)
  }

  /** Resolves when the bridge says that it and its hub are online, and the realtime channel is up. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const given = options.broker ?? BROKERS[0]
    const hub = await EmulatedHub.start({ keys: { [KEY]: ALL_SCOPES }, settleMs: 0, flavour: 'older', ...options.hub })
    const broker = typeof given === 'string' ? await startBroker(given) : given
    const observer = await Observer.on(broker.port, {
      protocol: broker instanceof Mosquitto ? '5' : '3.1.1',
      ...options.login,
    })
    const world = new World(hub, broker, observer, options)
    await world.ready()
    return world
  }

  async ready(): Promise<void> {
    await until('the bridge', () => this.observer.last('hub2mqtt/bridge/state') === 'online')
    await until('the hub', () => this.observer.last('hub2mqtt/home/state') === 'online')
    if (this.env['HUB_REALTIME'] === 'false') return
    await until('realtime', () => this.observer.last('hub2mqtt/home/info')?.includes('"connected"'))
  }

  /** Starts the bridge again as it was configured, or with changes. */
  async restart(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.bridge.stop()
    this.bridge = startBridge({ ...this.env, ...env }, this.#file, this.#clock)
  }

  /** An app that runs; always the same one. */
  get app(): string {
    const found = [...this.hub.apps.values()].find(({ state }) => state === 'running')
    if (found === undefined) throw new Error('no app runs')
    return found.id
  }

  /** Sends a command, below the base topic, and waits for the answer on its result topic. */
  async ask(topic: string, payload: string | Buffer = '', options: IClientPublishOptions = {}): Promise<Answer> {
    const result = `hub2mqtt/${topic.replace(/(^|\/)cmd(?=\/|$)/, '$1result')}`
    const before = this.observer.texts(result).length
    await this.observer.publish(`hub2mqtt/${topic}`, payload, options)
    const text = await until(`an answer on ${result}`, () => this.observer.texts(result)[before])
    return JSON.parse(text)
  }

  /** The app's retained state as last seen. */
  state(app: string): Record<string, unknown> | undefined {
    const text = this.observer.last(`hub2mqtt/home/app/${app}`)
    return text === undefined || text === '' ? undefined : JSON.parse(text)
  }

  /** Events seen for an app, oldest first. */
  events(app: string): Record<string, unknown>[] {
    return this.observer.texts(`hub2mqtt/home/app/${app}/event`).map((text) => JSON.parse(text))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bridge.stop()
    await this.observer[Symbol.asyncDispose]()
    await this.broker[Symbol.asyncDispose]()
    await this.hub.close()
  }
}

/** A way to start worlds that end with their test. */
export function useWorlds(): (options?: WorldOptions) => Promise<World> {
  const worlds: World[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]()
  })
  return async (options = {}) => {
    const world = await World.start(options)
    worlds.push(world)
    return world
  }
}
