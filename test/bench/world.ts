/** One program between a fresh broker and fresh hubs, each in a process of its own, and this process looking on. */
import { AnyWorld, type Parts } from '../support/any-world.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Arrivals } from './arrivals.ts'
import { Hubs } from './hubs.ts'
import { now } from './processes.ts'
import { Subject, type SubjectName } from './subject.ts'

export interface WorldOptions {
  readonly subject: SubjectName
  /** Of each hub. */
  readonly apps: number
  readonly hubs?: number
  readonly nodeOptions?: readonly string[]
  /** Whether to wait for discovery, which takes its time. Default true. */
  readonly settled?: boolean
}

export class World extends AnyWorld<Hubs, Subject, Mosquitto> {
  readonly arrivals: Arrivals
  /** From the start of the process until all states and `online` had been seen, in milliseconds. */
  startMs = Number.NaN
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
    const { apps, hubs: count = 1, settled = true } = options
    // Its own Nagle would add 40 ms to every command, whoever carries it out, and hide what the programs do.
    const broker = open.use(await Mosquitto.start({ config: ['set_tcp_nodelay true'] }))
    const hub = open.use(await Hubs.start(count, apps))
    const arrivals = new Arrivals()
    const observer = open.use(await arrivals.at(broker.port))
    const world = new World({ hub, broker, observer }, arrivals, options, open)
    const started = now()
    await world.#startSubject()
    const complete = await arrivals.seesStates(apps * count)
    await hub.heard()
    const discovered = settled ? await arrivals.seesDiscovery() : complete
    world.startMs = complete - started
    world.wholeStartMs = Math.max(complete, discovered) - started
    return world.keep(open)
  }

  async #startSubject(): Promise<void> {
    const { subject, nodeOptions = [] } = this.#options
    this.bridges.push(await Subject.start(subject, { mqtt: this.broker.url, hubs: this.hub.urls, nodeOptions }))
  }

  /** Ends the program, starts it anew and tells what a subscriber saw it publish meanwhile. */
  async restart(): Promise<{ readonly state: number; readonly discovery: number }> {
    await this.bridge[Symbol.asyncDispose]()
    const arrivals = new Arrivals()
    await using _ = await arrivals.at(this.broker.port)
    await this.#startSubject()
    await arrivals.seesStates(this.hub.apps)
    await this.hub.heard()
    await arrivals.seesDiscovery()
    return arrivals.sent
  }
}
