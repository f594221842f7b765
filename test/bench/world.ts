/** One program between a fresh broker and fresh hubs, each in a process of its own, and this process looking on. */
import { Mosquitto } from '../support/brokers.ts'
import { Hubs } from './hubs.ts'
import { Observer } from './observer.ts'
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

type Parts = Pick<World, 'broker' | 'hubs' | 'observer' | 'subject' | 'startMs' | 'wholeStartMs'>

export class World implements AsyncDisposable {
  readonly broker: Mosquitto
  readonly hubs: Hubs
  readonly observer: Observer
  readonly subject: Subject
  /** From the start of the process until all states and `online` had been seen, in milliseconds. */
  readonly startMs: number
  /** The same until all of discovery had been seen too. */
  readonly wholeStartMs: number
  readonly #options: WorldOptions
  readonly #open: AsyncDisposableStack

  private constructor(
    options: WorldOptions,
    open: AsyncDisposableStack,
    { broker, hubs, observer, subject, startMs, wholeStartMs }: Parts,
  ) {
    this.broker = broker
    this.hubs = hubs
    this.observer = observer
    this.subject = subject
    this.startMs = startMs
    this.wholeStartMs = wholeStartMs
    this.#options = options
    this.#open = open
  }

  /** Resolves when all is retained, and the program hears the events of all hubs. */
  static async start(options: WorldOptions): Promise<World> {
    await using open = new AsyncDisposableStack()
    const { apps, hubs: count = 1 } = options
    // Its own Nagle would add 40 ms to every command, whoever carries it out, and hide what the programs do.
    const broker = open.use(await Mosquitto.start({ config: ['set_tcp_nodelay true'] }))
    const hubs = open.use(await Hubs.start(count, apps))
    const observer = open.use(await Observer.on(broker.url))
    const started = now()
    const subject = open.use(await World.#startSubject(options, broker, hubs))
    const complete = await observer.seesStates(apps * count)
    await hubs.heard()
    const discovered = options.settled === false ? complete : await observer.seesDiscovery()
    const wholeStartMs = Math.max(complete, discovered) - started
    const parts = { broker, hubs, observer, subject, startMs: complete - started, wholeStartMs }
    return new World(options, open.move(), parts)
  }

  static #startSubject({ subject, nodeOptions = [] }: WorldOptions, broker: Mosquitto, hubs: Hubs): Promise<Subject> {
    return Subject.start(subject, { mqtt: broker.url, hubs: hubs.urls, nodeOptions })
  }

  /** Ends the program, starts it anew and tells what a subscriber saw it publish meanwhile. */
  async restart(): Promise<{ readonly state: number; readonly discovery: number }> {
    await this.subject[Symbol.asyncDispose]()
    await using observer = await Observer.on(this.broker.url)
    await using _ = await World.#startSubject(this.#options, this.broker, this.hubs)
    await observer.seesStates(this.hubs.apps)
    await this.hubs.heard()
    await observer.seesDiscovery()
    return observer.sent
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}
