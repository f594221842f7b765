/** One program between a new broker and new hubs, all in separate processes, observed by this process. */
import { AnyWorld, type Parts } from '../support/any-world.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Arrivals } from './arrivals.ts'
import { Hubs } from './hubs.ts'
import { now } from './processes.ts'
import { Subject, type SubjectName } from './subject.ts'

// Nagle's algorithm in the broker would add 40 ms to every command and hide the differences between the programs.
// Without a queue limit, the observer misses no messages in a burst.
const BROKER = ['set_tcp_nodelay true', 'max_queued_messages 0']

export interface WorldOptions {
  readonly subject: SubjectName
  /** The number of apps on each hub. */
  readonly apps: number
  readonly hubs?: number
  /** Whether the keys permit reads of the hub's health, devices and flows. Default: `false`. */
  readonly evidence?: boolean
  /** Whether to wait for discovery, which takes longer. Default: `true`. */
  readonly settled?: boolean
  /** The number of devices that are published for Home Assistant per second. Default: that of the program. */
  readonly discoveryRate?: number
  /** Time limit for all states, in milliseconds; default: a minute. */
  readonly timeoutMs?: number
}

/** The numbers of messages that a restart without changes sent, and its duration. */
export interface Restarted {
  readonly state: number
  readonly discovery: number
  /** The time from the start of the process until it received the events of all hubs. */
  readonly ms: number
}

export class World extends AnyWorld<Hubs, Subject, Mosquitto> {
  readonly arrivals: Arrivals
  /** The time from the start of the process until all states and `online` had arrived, in milliseconds. */
  startMs = Number.NaN
  /** The time from the start of the process until the discovery messages had arrived as well, in milliseconds. */
  wholeStartMs = Number.NaN
  readonly #options: WorldOptions

  private constructor(
    parts: Parts<Hubs, Mosquitto>,
    arrivals: Arrivals,
    options: WorldOptions,
    open: AsyncDisposableStack,
  ) {
    super(parts, open)
    this.arrivals = arrivals
    this.#options = options
  }

  /** Resolves when all messages are retained and the program receives the events of all hubs. */
  static async start(options: WorldOptions): Promise<World> {
    await using open = new AsyncDisposableStack()
    const { apps, hubs: count = 1, evidence, settled = true, timeoutMs } = options
    const broker = open.use(await Mosquitto.start({ config: BROKER }))
    const hub = open.use(await Hubs.start(count, apps, evidence))
    const arrivals = new Arrivals()
    const observer = open.use(await arrivals.at(broker.port))
    await Subject.prepare(options.subject)
    const world = new World({ hub, broker, observer }, arrivals, options, open)
    const started = now()
    await world.#startSubject()
    const complete = await arrivals.seesStates(apps * count, timeoutMs)
    await hub.untilSubscribed(timeoutMs)
    const discovered = settled ? await arrivals.seesDiscovery() : complete
    world.startMs = complete - started
    world.wholeStartMs = Math.max(complete, discovered) - started
    return world.keep(open)
  }

  async #startSubject(): Promise<void> {
    const { subject, discoveryRate } = this.#options
    const place = { mqtt: this.broker.url, hubs: this.hub.urls, discoveryRate }
    this.bridges.push(await Subject.start(subject, place))
  }

  /** Restarts the program. Resolves with the number of messages that a subscriber received in the meantime. */
  async restart(): Promise<Restarted> {
    await this.bridge[Symbol.asyncDispose]()
    const arrivals = new Arrivals()
    await using _ = await arrivals.at(this.broker.port)
    // Ignore the retained messages that the broker sends to the new subscriber.
    await arrivals.seesDiscovery()
    const started = now()
    await this.#startSubject()
    const { timeoutMs } = this.#options
    await arrivals.seesStates(this.hub.apps * this.hub.urls.length, timeoutMs)
    await this.hub.untilSubscribed(timeoutMs)
    const ms = now() - started
    await arrivals.seesDiscovery()
    return { ...arrivals.sent, ms }
  }

  /** Restarts the broker without its data. Resolves when the broker retains all states and discovery messages again. */
  async restartBroker(): Promise<{ readonly statesMs: number; readonly wholeMs: number }> {
    await this.broker.stop()
    const arrivals = new Arrivals()
    await this.broker.run()
    const started = now()
    await using _ = await arrivals.at(this.broker.port)
    const states = await arrivals.seesStates(this.hub.apps * this.hub.urls.length, this.#options.timeoutMs)
    const discovered = await arrivals.seesDiscovery()
    return { statesMs: states - started, wholeMs: Math.max(states, discovered) - started }
  }
}
