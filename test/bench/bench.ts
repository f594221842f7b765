/** One program between a new broker and new hubs, all in separate processes, observed by this process. */
import { Mosquitto } from '../support/brokers.ts'
import { Arrivals } from './arrivals.ts'
import { Hubs } from './hubs.ts'
import { now } from './processes.ts'
import { Subject, type SubjectName } from './subject.ts'

// Nagle's algorithm in the broker would add 40 ms to every command and hide the differences between the programs.
// Without a queue limit, the observer misses no messages in a burst.
const BROKER = ['set_tcp_nodelay true', 'max_queued_messages 0']

interface BenchOptions {
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

export type Bench = Awaited<ReturnType<typeof startBench>>

/** Resolves when all messages are retained and the program receives the events of all hubs. */
export async function startBench(options: BenchOptions) {
  await using open = new AsyncDisposableStack()
  const { subject, apps, hubs: count = 1, evidence, settled = true, discoveryRate, timeoutMs } = options
  const broker = open.use(await Mosquitto.start({ config: BROKER }))
  const hub = open.use(await Hubs.start(count, apps, evidence))
  const arrivals = new Arrivals()
  open.use(await arrivals.at(broker.port))
  await Subject.prepare(subject)
  const bridges = open.use(new AsyncDisposableStack())
  const startBridge = async () =>
    bridges.use(await Subject.start(subject, { mqtt: broker.url, hubs: hub.urls, discoveryRate }))
  const started = now()
  const bridge = await startBridge()
  const complete = await arrivals.seesStates(apps * count, timeoutMs)
  await hub.untilSubscribed(timeoutMs)
  const discovered = settled ? await arrivals.seesDiscovery() : complete
  const parts = open.move()
  return {
    broker,
    hub,
    arrivals,
    bridge,
    startBridge,
    timeoutMs,
    /** The time from the start of the process until all states and `online` had arrived, in milliseconds. */
    startMs: complete - started,
    /** The time from the start of the process until the discovery messages had arrived as well, in milliseconds. */
    wholeStartMs: Math.max(complete, discovered) - started,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

/**
 * Restarts the program. Resolves with the numbers of messages that a subscriber received in the meantime, and the time
 * from the start of the process until it received the events of all hubs. `bridge` stays the former process.
 */
export async function restart({ broker, hub, bridge, startBridge, timeoutMs }: Bench) {
  await bridge[Symbol.asyncDispose]()
  const arrivals = new Arrivals()
  await using _ = await arrivals.at(broker.port)
  // Ignore the retained messages that the broker sends to the new subscriber.
  await arrivals.seesDiscovery()
  const started = now()
  await startBridge()
  await arrivals.seesStates(hub.apps * hub.urls.length, timeoutMs)
  await hub.untilSubscribed(timeoutMs)
  const ms = now() - started
  await arrivals.seesDiscovery()
  return { ...arrivals.sent, ms }
}

/** Restarts the broker without its data. Resolves when the broker retains all states and discovery messages again. */
export async function restartBroker({ broker, hub, timeoutMs }: Bench) {
  await broker.stop()
  const arrivals = new Arrivals()
  await broker.run()
  const started = now()
  await using _ = await arrivals.at(broker.port)
  const states = await arrivals.seesStates(hub.apps * hub.urls.length, timeoutMs)
  const discovered = await arrivals.seesDiscovery()
  return { statesMs: states - started, wholeMs: Math.max(states, discovered) - started }
}
