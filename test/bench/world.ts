/** One program between a fresh broker and fresh hubs, each in a process of its own, and this process looking on. */
import { AnyWorld, type Parts } from '../support/any-world.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Arrivals } from './arrivals.ts'
import { Hubs } from './hubs.ts'
import { now } from './processes.ts'
import { Subject, type SubjectName } from './subject.ts'

// Its own Nagle would add 40 ms to every command, whoever carries it out, and hide what the programs do. And whoever looks
// on must not miss what comes in a burst.
const BROKER = ['set_tcp_nodelay true', 'max_queued_messages 0']

export interface WorldOptions {
  readonly subject: SubjectName
  /** Of each hub. */
  readonly apps: number
  readonly hubs?: number
  /** Whether the keys permit what is read of the hub, its devices and its flows. Default false. */
  readonly evidence?: boolean
  readonly nodeOptions?: readonly string[]
  /** Whether to wait for discovery, which takes its time. Default true. */
  readonly settled?: boolean
  /** Devices a second that Home Assistant is told of; default: as users have it. */
  readonly discoveryRate?: number
  /** How long all states may take, in milliseconds; default a minute. */
  readonly patienceMs?: number
}

/** What a restart with nothing changed sent. */
export interface Restarted {
  readonly state: number
  readonly discovery: number
  /** From the start of the process until it heard the events of all hubs. */
  readonly ms: number
}

export class World extends AnyWorld<Hubs, Subject, Mosquitto> {
  readonly arrivals: Arrivals
  /** From the start of the process until all states and `online` had been seen, in milliseconds. */
  startMs = Number.NaN
  /** The same until the program heard the events of all hubs. */
  heardMs = Number.NaN
  /** The same until all of discovery had been seen too. */
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

  /** Resolves when all is retained, and the program hears the events of all hubs. */
  static async start(options: WorldOptions): Promise<World> {
    await using open = new AsyncDisposableStack()
    const { apps, hubs: count = 1, evidence, settled = true, patienceMs } = options
    const broker = open.use(await Mosquitto.start({ config: BROKER }))
    const hub = open.use(await Hubs.start(count, apps, evidence))
    const arrivals = new Arrivals()
    const observer = open.use(await arrivals.at(broker.port))
    await Subject.prepare(options.subject)
    const world = new World({ hub, broker, observer }, arrivals, options, open)
    const started = now()
    await world.#startSubject()
    const complete = await arrivals.seesStates(apps * count, patienceMs)
    await hub.heard(patienceMs)
    world.heardMs = now() - started
    const discovered = settled ? await arrivals.seesDiscovery() : complete
    world.startMs = complete - started
    world.wholeStartMs = Math.max(complete, discovered) - started
    return world.keep(open)
  }

  async #startSubject(): Promise<void> {
    const { subject, nodeOptions = [], discoveryRate } = this.#options
    const place = { mqtt: this.broker.url, hubs: this.hub.urls, nodeOptions, discoveryRate }
    this.bridges.push(await Subject.start(subject, place))
  }

  /** Ends the program, starts it anew and tells what a subscriber saw it publish meanwhile. */
  async restart(): Promise<Restarted> {
    await this.bridge[Symbol.asyncDispose]()
    const arrivals = new Arrivals()
    await using _ = await arrivals.at(this.broker.port)
    // What the broker sends to whoever looks on is no part of it.
    await arrivals.seesDiscovery()
    const started = now()
    await this.#startSubject()
    const { patienceMs } = this.#options
    await arrivals.seesStates(this.hub.apps * this.hub.urls.length, patienceMs)
    await this.hub.heard(patienceMs)
    const ms = now() - started
    await arrivals.seesDiscovery()
    return { ...arrivals.sent, ms }
  }

  /** Replaces the broker by one that knows nothing; resolves when it holds all states, and then all of discovery, again. */
  async restartBroker(): Promise<{ readonly statesMs: number; readonly wholeMs: number }> {
    await this.broker.stop()
    const arrivals = new Arrivals()
    await this.broker.run()
    const started = now()
    await using _ = await arrivals.at(this.broker.port)
    const states = await arrivals.seesStates(this.hub.apps * this.hub.urls.length, this.#options.patienceMs)
    const discovered = await arrivals.seesDiscovery()
    return { statesMs: states - started, wholeMs: Math.max(states, discovered) - started }
  }
}
