/** The environment of a test: an emulated hub, a real broker, bridges between them, and an observer. */
import type { IClientPublishOptions } from 'mqtt'
import { EmulatedHub, type EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { type RunningBridge, startBridge } from './bridge.ts'
import { BROKERS, type Broker, type BrokerKind, Mosquitto, startBroker } from './brokers.ts'
import { JumpClock } from './jump-clock.ts'
import { Observer, type ObserverOptions } from './observer.ts'
import { until } from './until.ts'

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

type Env = Readonly<Record<string, string>>
type Bridge = AsyncDisposable & Pick<RunningBridge, 'stop' | 'ended'>
/** Starts a bridge, in this process or as a separate process. */
type Run<B> = (env: Env, clock: JumpClock) => B

interface OpenOptions {
  /** The kind of broker to start, or a broker that the test starts and stops itself. */
  readonly broker?: BrokerKind | Mosquitto
  /** The options of the emulated hub. By default, it has one key with all scopes. */
  readonly hub?: EmulatedHubOptions
  /** The configuration as environment variables, without `HUB2MQTT_`. */
  readonly env?: Env
  readonly observer?: ObserverOptions
}

export interface WorldOptions extends OpenOptions {
  readonly file?: string
  /** The address of the app store; default: the public app store. */
  readonly storeUrl?: string
  /** Returns a random number from 0 to 1; default: `Math.random`. */
  readonly random?: () => number
}

export type Parts<K extends Broker> = Pick<World<Bridge, K>, 'hub' | 'broker' | 'observer'>

/** A jump of the clock that is longer than any delay in the bridge, and shorter than the hub's timeout. */
const PAUSE_MS = 6_000
/** Topics that `quiet` ignores: those of commands and answers, and those with messages that are repeated regularly. */
const IGNORED = /\/(cmd|result|presence|health)(\/|$)/

export class World<B extends Bridge = RunningBridge, K extends Broker = Broker> implements AsyncDisposable {
  readonly hub: EmulatedHub
  readonly broker: K
  readonly observer: Observer
  /** The bridges, the oldest first. */
  readonly bridges: B[] = []
  readonly env: Env
  readonly #run: Run<B>
  readonly #open: AsyncDisposableStack
  #base = 'hub2mqtt'
  /** The clock of a bridge in this process: the system's clock, until the test moves it. */
  readonly clock = new JumpClock()

  /** @param open closes everything that the world uses, after the bridges */
  protected constructor(parts: Parts<K>, env: Env, run: Run<B>, open: AsyncDisposableStack) {
    this.hub = parts.hub
    this.broker = parts.broker
    this.observer = parts.observer
    this.env = env
    this.#run = run
    this.#open = open
    open.defer(async () => {
      await using bridges = new AsyncDisposableStack()
      for (const bridge of this.bridges) bridges.use(bridge)
    })
  }

  /** Resolves when the bridge and its hub are online and the realtime channel is connected. */
  static start({ file, storeUrl, random, ...options }: WorldOptions = {}): Promise<World> {
    return World.with((env, clock) => startBridge(env, file, clock, { storeUrl, random }), options)
  }

  /** Like `start`, but `run` starts the bridge. */
  static async with<B extends Bridge>(run: Run<B>, options: OpenOptions): Promise<World<B>> {
    await using open = new AsyncDisposableStack()
    const world = open.use(await World.open(run, options))
    world.startBridge()
    await world.ready()
    open.move()
    return world
  }

  /** Like `with`, but does not start a bridge yet. */
  static async open<B extends Bridge>(run: Run<B>, options: OpenOptions): Promise<World<B>> {
    const { broker: wanted = BROKERS[0], hub: hubOptions, observer: login, env } = options
    await using open = new AsyncDisposableStack()
    const keys = { [KEY]: ALL_SCOPES }
    const hub = open.use(await EmulatedHub.start({ keys, settleMs: 0, flavour: 'older', ...hubOptions }))
    const broker = open.use(typeof wanted === 'string' ? await startBroker(wanted) : wanted)
    const protocol = broker instanceof Mosquitto ? '5' : '3.1.1'
    const observer = open.use(await Observer.on(broker.port, { protocol, ...login }))
    const own = { HUB_URL: hub.url, HUB_API_KEY: KEY, HUB_POLL_INTERVAL: '2s', HUB_POLL_INTERVAL_FALLBACK: '1s' }
    return new World({ hub, broker, observer }, { ...own, MQTT_URL: broker.url, ...env }, run, open.move())
  }

  get bridge(): B {
    const bridge = this.bridges.at(-1)
    if (bridge === undefined) throw new Error('no bridge was started')
    return bridge
  }

  startBridge(changes: Env = {}): B {
    const env = { ...this.env, ...changes }
    this.#base = env['MQTT_BASE_TOPIC'] ?? 'hub2mqtt'
    const bridge = this.#run(env, this.clock)
    this.bridges.push(bridge)
    return bridge
  }

  /** Waits until the bridge is ready; fails as soon as the bridge ends. */
  async ready(): Promise<void> {
    try {
      await this.#unlessEnded(this.#online())
    } catch (error) {
      // Ignore errors while the bridge stops, because they would hide the reason.
      await this.bridges
        .pop()
        ?.stop()
        .catch(() => undefined)
      throw error
    }
  }

  async restart(env: Env = {}): Promise<void> {
    await this.bridge.stop()
    await this.#untilState('offline')
    this.startBridge(env)
  }

  async restartUntilReady(env?: Env): Promise<void> {
    await this.restart(env)
    await this.ready()
  }

  /**
   * Reads the hub and moves the clock until no delayed work is left and the bridge publishes nothing more. A test can
   * then check that a message was never sent.
   */
  async settle(hub = 'home'): Promise<void> {
    await this.#untilState('online')
    await until('the hub', async () => (await this.request(`${hub}/cmd/refresh`)).ok)
    await this.quiet()
  }

  /** Like `settle`, but does not read the hub. */
  async quiet(): Promise<void> {
    const published = () => this.observer.seen.filter(({ topic }) => !IGNORED.test(topic)).length
    for (let rounds = 0; rounds < 2; rounds += 1) {
      const before = published()
      this.clock.jump(PAUSE_MS)
      await this.request('bridge/cmd/ping')
      if (published() > before) rounds = -1
    }
  }

  /** The id of a running app. It is always the same app. */
  get app(): string {
    const found = [...this.hub.apps.values()].find(({ state }) => state === 'running')
    if (found === undefined) throw new Error('no app runs')
    return found.id
  }

  /** Returns the topics of the hub's apps that were cleared, except in the first `since` messages. */
  clearedApps(since = 0): string[] {
    const isOfApp = (topic: string) => [...this.hub.apps.keys()].some((id) => topic.includes(id))
    return this.observer.seen.slice(since).flatMap(({ topic, text }) => (text === '' && isOfApp(topic) ? [topic] : []))
  }

  requestCount(operation: string): number {
    return this.hub.requests.filter((request) => request.operation === operation).length
  }

  /** Sends a command on a topic below the base topic, and waits for the answer on the result topic. */
  async request(topic: string, payload: string | Buffer = '', options: IClientPublishOptions = {}): Promise<Answer> {
    const { observer } = this
    const base = this.#base
    const result = `${base}/${topic.replace(/(^|\/)cmd(?=\/|$)/, '$1result')}`
    const before = observer.texts(result).length
    await observer.publish(`${base}/${topic}`, payload, options)
    const answer = observer.until(`an answer on ${result}`, () => observer.texts(result)[before], 20_000)
    return JSON.parse(await this.#unlessEnded(answer))
  }

  state(app: string): Record<string, unknown> | undefined {
    const text = this.observer.last(`hub2mqtt/home/app/${app}`)
    return text === undefined || text === '' ? undefined : JSON.parse(text)
  }

  events(app: string): Record<string, unknown>[] {
    return this.observer.texts(`hub2mqtt/home/app/${app}/event`).map((text) => JSON.parse(text))
  }

  /** Waits for an answer of the bridge, but rejects if the bridge ends earlier. */
  #unlessEnded<T>(waiting: Promise<T>): Promise<T> {
    return Promise.race([waiting, this.bridge.ended])
  }

  #untilState(state: 'online' | 'offline'): Promise<boolean> {
    return this.observer.until(
      `the bridge to be ${state}`,
      () => this.observer.last(`${this.#base}/bridge/state`) === state,
      // A separate process takes seconds to start on a busy machine.
      30_000,
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }

  async #online(): Promise<void> {
    const { observer } = this
    await this.#untilState('online')
    await observer.until('the hub', () => observer.last('hub2mqtt/home/state') === 'online')
    if (this.env['HUB_REALTIME'] === 'false') return
    await observer.until('realtime', () => observer.last('hub2mqtt/home/info')?.includes('"connected"'))
  }
}
