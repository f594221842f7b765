/** The environment of a scenario: broker, hubs, bridge and clients. Detects when all of them are at rest. */
import { setTimeout } from 'node:timers/promises'
import type { IClientPublishOptions } from 'mqtt'
import { type RunningBridge, startBridge } from '../support/bridge.ts'
import { type BrokerKind, startBroker } from '../support/brokers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { Client } from './client.ts'
import { SteppedClock } from './clock.ts'
import type { SteppedHub } from './hub.ts'
import { MARKER, markerOf, PING } from './marker.ts'
import { normalise, type Stage } from './record.ts'
import { Recorder, type RecorderOptions } from './recorder.ts'

export type HubName = 'home' | 'attic'

const TIMEOUT_MS = 30_000
const MINUTE_MS = 60_000
/** The bridge is at rest after this many round trips without other messages. */
const QUIET_ROUNDS = 2
const ROUND_MS = 6
/** `reach` advances the clock to timers that are due within this time. `pass` advances it further. */
const NEAR_MS = 5_000
/** The time after which discovery publishes a changed device again. */
const DISCOVERY_RESTS_MS = 2_500

const STATE = 'hub2mqtt/bridge/state'
const PROBE = 'hub2mqtt/bridge/probe'

type Hubs = Readonly<Record<HubName, SteppedHub>>

interface Parts extends Pick<RecorderOptions, 'join'> {
  readonly line: TcpProxy
  readonly hubs: Hubs
  readonly watcher: Client
  readonly asker: Client
  readonly open: AsyncDisposableStack
}

export class Theatre implements AsyncDisposable {
  readonly line: TcpProxy
  readonly hubs: Hubs
  readonly clock = new SteppedClock()
  /** A client that receives all messages. */
  readonly watcher: Client
  readonly asker: Client
  readonly #open: AsyncDisposableStack
  readonly #recorder: Recorder
  #bridge: RunningBridge | undefined
  /** Whether the bridge answers pings at the moment. */
  #isThere = false
  #markers = 0

  private constructor({ line, hubs, watcher, asker, join, open }: Parts) {
    this.#open = open
    this.line = line
    this.hubs = hubs
    this.watcher = watcher
    this.asker = asker
    const named = new Map(
      Object.entries(hubs).map(([name, { emulated }]) => [`127.0.0.1:${emulated.port}`, `address of ${name}`]),
    )
    this.#recorder = new Recorder({
      clients: { watcher, asker },
      join,
      normalise: (payload) => normalise(payload, named),
    })
  }

  static async open(kind: BrokerKind, hubs: Hubs): Promise<Theatre> {
    await using open = new AsyncDisposableStack()
    for (const hub of Object.values(hubs)) open.use(hub)
    // Without this option, Mosquitto delays each answer.
    const { port } = open.use(await startBroker(kind, ['set_tcp_nodelay true']))
    const join: Parts['join'] = (filters) => Client.connect(port, kind, filters)
    const watcher = open.use(await join(['#']))
    const asker = open.use(await join(['recorder/#', 'hub2mqtt/+/result/#', 'hub2mqtt/+/app/+/result/#']))
    const line = open.use(await TcpProxy.to(port))
    return new Theatre({ line, hubs, watcher, asker, join, open: open.move() })
  }

  /** Resolves when the bridge is online. Its hubs might not be connected yet. */
  async start(config: object): Promise<void> {
    await this.startsOver(() => {
      this.#run(config)
    })
  }

  async startAlone(config: object): Promise<void> {
    this.line.cut()
    this.#run(config)
    await this.rest()
  }

  #run(config: object): void {
    // JSON is valid YAML.
    this.#bridge = startBridge({}, JSON.stringify(config), this.clock, { version: '0.0.0-recording', random: () => 0 })
  }

  async stop(): Promise<void> {
    const bridge = this.#bridge
    this.#bridge = undefined
    this.#isThere = false
    await bridge?.stop()
    await this.rest()
  }

  /** Reloads the configuration, and waits until changed devices have been published. */
  async reload(config: object): Promise<void> {
    this.#bridge?.reload(JSON.stringify(config))
    await this.pass(DISCOVERY_RESTS_MS)
  }

  /** Publishes as a client other than the bridge. */
  async say(topic: string, payload: string, { retain }: { readonly retain: boolean }): Promise<void> {
    await this.asker.publish(topic, payload, { retain })
    await this.rest()
  }

  async shows(topic: string, text: string): Promise<void> {
    await this.reach(`${text} on ${topic}`, () => this.watcher.last(topic)?.includes(text))
  }

  /** Releases the first answers from a hub, and waits for its realtime channel. */
  async meet(name: HubName): Promise<void> {
    const hub = this.hubs[name]
    // Release one request at a time, because otherwise the order of the answers would affect the messages.
    for (const operation of ['ping', 'getApps', 'getApps'] as const) {
      await this.reach(`${operation} of ${name}`, () => hub.isAsked(operation))
      hub.release()
    }
    await this.shows(`hub2mqtt/${name}/info`, '"connected"')
    hub.open()
  }

  /** Sends a command, and waits for its answer and its effects. */
  async ask(topic: string, payload: string | Buffer = '', options: IClientPublishOptions = {}): Promise<void> {
    await this.waitFor(topic, options, () => this.asker.publish(`hub2mqtt/${topic}`, payload, options))
  }

  /** Sends a command, and advances the clock until it is answered. */
  async waitFor(topic: string, options: IClientPublishOptions, send: () => Promise<void>): Promise<void> {
    const before = this.#answers(topic, options)
    await send()
    // Advance the clock, because the bridge delays requests to a hub that has answered 429.
    await this.reach(`an answer to ${topic}`, () => this.#answers(topic, options) > before)
  }

  #answers(topic: string, { properties }: IClientPublishOptions): number {
    const result = `hub2mqtt/${topic.replace(/(^|\/)cmd(?=\/|$)/, '$1result')}`
    const reply = properties?.responseTopic
    return this.asker.seen.filter((packet) => packet.topic === result || packet.topic === reply).length
  }

  /** Moves the apps of a hub through their transitions, step by step. */
  async walk(name: HubName, steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      this.hubs[name].step()
      await this.rest()
    }
  }

  /** Advances the clock from timer to timer until `probe` returns `true`. Waits for rest before each step. */
  async reach(what: string, probe: () => boolean | undefined): Promise<void> {
    const deadline = performance.now() + TIMEOUT_MS
    for (;;) {
      await this.rest()
      if (probe()) return
      if (performance.now() > deadline) throw new Error(`${what} was not reached`)
      if (this.clock.next <= NEAR_MS) this.clock.jump(Math.max(0, this.clock.next))
    }
  }

  async pass(ms: number): Promise<void> {
    const end = this.clock.elapsed() + ms
    for (;;) {
      await this.rest()
      const left = end - this.clock.elapsed()
      if (left <= 0) return
      this.clock.jump(Math.max(0, Math.min(left, this.clock.next)))
    }
  }

  /** Resolves when no message is in transit between hubs, bridge, broker and clients. */
  async rest(): Promise<void> {
    // If the bridge does not answer, pings do not pass through it, so more rounds are needed.
    const rounds = this.#isThere ? QUIET_ROUNDS : 5 * QUIET_ROUNDS
    for (let quiet = 0; quiet < rounds; ) {
      const before = this.#activity
      await until('no timer to be due', () => !this.clock.busy, TIMEOUT_MS)
      await this.#roundTrip()
      // Wait, because a request between bridge and hub may take longer than a few round trips.
      await setTimeout(ROUND_MS)
      quiet = this.#activity === before ? quiet + 1 : 0
    }
  }

  get #activity(): number {
    const hubs = Object.values(this.hubs).reduce((sum, { activity }) => sum + activity, 0)
    return hubs + this.watcher.seen.length
  }

  async #roundTrip(): Promise<void> {
    this.#markers += 1
    const marker = markerOf(this.#markers)
    await this.asker.publish(this.#isThere ? PING : MARKER, `{"transaction":${marker}}`)
    await Promise.all([this.watcher, this.asker].map((client) => client.untilMarker(marker)))
  }

  async startsOver(cause: () => void): Promise<void> {
    const before = this.watcher.texts(PROBE).length
    const states = this.watcher.texts(STATE).length
    this.#isThere = false
    cause()
    const isBack = () =>
      this.watcher.texts(PROBE).length > before && this.watcher.texts(STATE).slice(states).at(-1) === 'online'
    await until('another connection', isBack, TIMEOUT_MS)
    this.#isThere = true
    await this.rest()
  }

  /** Cuts the connection, so that the broker publishes the will. */
  async cut(): Promise<void> {
    this.#isThere = false
    this.line.cut()
    await until('the will', () => this.watcher.last(STATE) === 'offline', TIMEOUT_MS)
    await this.rest()
  }

  async repair(): Promise<void> {
    this.line.refuse(false)
    await this.reach('a connection', () => this.line.open > 0)
    // Do not advance the clock here, because the bridge would repeat requests to a slow broker.
    await until('the bridge', () => this.watcher.last(STATE) === 'online', TIMEOUT_MS)
    this.#isThere = true
    await this.rest()
  }

  /** @param lastOnly topics on which only the last message is recorded */
  async stage(name: string, play: () => Promise<void>, lastOnly: readonly string[] = []): Promise<void> {
    this.clock.setForward(MINUTE_MS)
    await play()
    await this.pass(DISCOVERY_RESTS_MS)
    await this.#recorder.write(name, lastOnly)
  }

  get recorded(): readonly Stage[] {
    return this.#recorder.stages
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bridge?.stop()
    await this.#open.disposeAsync()
  }
}
