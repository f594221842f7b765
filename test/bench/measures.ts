import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Book } from './book.ts'
import type { BurstOptions } from './hubs.ts'
import { now, onOneCore } from './processes.ts'
import { percentile } from './stats.ts'
import type { SubjectName } from './subject.ts'
import { World } from './world.ts'

export interface Effort {
  readonly rounds: number
  /** The number of events, and also of commands, that are sent one at a time. */
  readonly samples: number
  /** The number of events that are sent at a rate of 100 per second. */
  readonly steady: number
  readonly bursts: number
  readonly commands: number
  /** How long to wait until an idle process is at rest. */
  readonly restMs: number
  /** The maximum total number of apps for which growth is measured. */
  readonly largest: number
  readonly manyEvents: number
  readonly idleMinutes: number
}

const APPS = 50
const BURST = 20_000
const CLIENTS = 16

/** Runs one round of one program with 50 apps: start, memory at rest, events, commands. */
export async function measureTraffic(subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  await using world = await World.start({ subject, apps: APPS })
  book.add(subject, 'start50Ms', world.startMs)
  book.add(subject, 'wholeStart50Ms', world.wholeStartMs)
  await sleep(effort.restMs)
  book.add(subject, 'idleRss', world.bridge.rss)
  await warmUp(world, effort)
  await measureEvents(world, subject, effort, book)
  await measureCommands(world, subject, effort, book)
}

/**
 * Runs load before the measurement, because a bridge runs for months, and its first seconds do not matter. V8 compiles
 * hot code on other threads. After a shorter warm-up, this took up to 35 µs per event.
 */
async function warmUp(world: World, { steady, commands }: Effort): Promise<void> {
  await burst(world, BURST)
  // The bridge combines the events of a burst. At this rate, it publishes each event.
  await burst(world, 5 * steady, { perSecond: 2000 })
  await askAll(world, 3 * commands)
}

export interface BurstResult {
  readonly ms: number
  readonly cpuUs: number
}

/** Measures the time from the first event until the last state of each app has arrived, and the CPU time per event. */
export async function burst(world: World, events: number, options?: BurstOptions): Promise<BurstResult> {
  const cpuBefore = world.bridge.cpuMs
  const { began, last } = world.hub.burst(events, options)
  const seen = await world.arrivals.sees(last)
  const ms = seen - (await began)
  // Wait for work that is still in progress, because its cost belongs to the events.
  await sleep(200)
  return { ms, cpuUs: ((world.bridge.cpuMs - cpuBefore) * 1000) / events }
}

async function eventTimes({ hub, arrivals }: World, { samples }: Effort): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < samples; i += 1) {
    const { began, last } = hub.burst(1)
    times.push((await arrivals.sees(last)) - (await began))
  }
  return times
}

async function measureEvents(world: World, subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  const cpuBefore = world.bridge.cpuMs
  const times = await eventTimes(world, effort)
  book.add(subject, 'eventCpuUs', ((world.bridge.cpuMs - cpuBefore) * 1000) / times.length)
  book.add(subject, 'eventP50', percentile(times, 0.5))
  book.add(subject, 'eventP99', percentile(times, 0.99))
  // Measure the steady rate before the bursts, because V8 collects their garbage in the following seconds.
  book.add(subject, 'steadyCpuUs', (await burst(world, effort.steady, { perSecond: 100 })).cpuUs)
  for (let i = 0; i < effort.bursts; i += 1) {
    const { ms, cpuUs } = await burst(world, BURST)
    book.add(subject, 'burstMs', ms)
    book.add(subject, 'burstCpuUs', cpuUs)
  }
  book.add(subject, 'eventfulCpuUs', (await burst(world, BURST, { eventful: true })).cpuUs)
  if (world.bridge.port === 0) return
  // Read the live channel, as an open page does.
  const page = new WebSocket(`ws://127.0.0.1:${world.bridge.port}/api/live`)
  await once(page, 'message')
  page.resume()
  book.add(subject, 'viewedCpuUs', (await burst(world, effort.steady, { perSecond: 100 })).cpuUs)
  page.close()
  await once(page, 'close')
}

const enable = (i: number) => `hub2mqtt/home/app/net.population.app${String(i % APPS).padStart(4, '0')}/cmd/enable`

/** Sends commands to the apps in turn, from several clients in parallel that each wait for their answer. */
async function askAll(world: World, commands: number): Promise<void> {
  let sent = 0
  const client = async () => {
    while (sent < commands) await world.arrivals.ask(enable(sent++))
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

async function commandTimes({ arrivals }: World, { samples }: Effort): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < samples; i += 1) times.push(await arrivals.ask(enable(i)))
  return times
}

async function measureCommands(world: World, subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  const times = await commandTimes(world, effort)
  book.add(subject, 'commandP50', percentile(times, 0.5))
  book.add(subject, 'commandP99', percentile(times, 0.99))
  const started = now()
  book.add(subject, 'commandCpuUs', await commandCpuUs(world, effort))
  book.add(subject, 'commandsPerSecond', effort.commands / ((now() - started) / 1000))
}

async function commandCpuUs(world: World, { commands }: Effort): Promise<number> {
  const cpuBefore = world.bridge.cpuMs
  await askAll(world, commands)
  return ((world.bridge.cpuMs - cpuBefore) * 1000) / commands
}

/**
 * Runs all processes on one core. With several cores, the scheduler's placement of four processes that wake each other
 * can matter more than the work of the programs.
 */
export function measureOnOneCore(subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  return onOneCore(async () => {
    await using world = await World.start({ subject, apps: APPS })
    await warmUp(world, effort)
    book.add(subject, 'oneCoreEventP50', percentile(await eventTimes(world, effort), 0.5))
    book.add(subject, 'oneCoreCommandP50', percentile(await commandTimes(world, effort), 0.5))
    book.add(subject, 'oneCoreCommandCpuUs', await commandCpuUs(world, effort))
  })
}

export async function measureLargeStart(subject: SubjectName, book: Book): Promise<void> {
  await using world = await World.start({ subject, apps: 1000, settled: false })
  book.add(subject, 'start1000Ms', world.startMs)
}

/** Measures by how much a million events increase the memory of the process at rest. */
export async function measureManyEvents(subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  await using world = await World.start({ subject, apps: APPS })
  await sleep(effort.restMs)
  const before = world.bridge.rss
  for (let left = effort.manyEvents; left > 0; left -= BURST) await burst(world, Math.min(left, BURST))
  await sleep(effort.restMs)
  book.add(subject, 'addedRss', world.bridge.rss - before)
}

export async function measureRestart(book: Book): Promise<void> {
  await using world = await World.start({ subject: 'hub2mqtt', apps: APPS })
  const { state, discovery } = await world.restart()
  book.add('hub2mqtt', 'restartState', state)
  book.add('hub2mqtt', 'restartDiscovery', discovery)
}

export async function measureIdle(effort: Effort, book: Book): Promise<void> {
  await using world = await World.start({ subject: 'hub2mqtt', apps: APPS })
  await sleep(effort.restMs)
  const before = world.bridge.cpuMs
  const ms = effort.idleMinutes * 60_000
  await sleep(ms)
  book.add('hub2mqtt', 'idleCpuShare', (world.bridge.cpuMs - before) / ms)
}
