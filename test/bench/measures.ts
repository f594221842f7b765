import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type Bench, restart, startBench } from './bench.ts'
import type { Book } from './book.ts'
import type { BurstOptions } from './hubs.ts'
import { now, onOneCore } from './processes.ts'
import { percentile } from './stats.ts'
import type { SubjectName } from './subject.ts'

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
  await using bench = await startBench({ subject, apps: APPS })
  book.add(subject, 'start50Ms', bench.startMs)
  book.add(subject, 'wholeStart50Ms', bench.wholeStartMs)
  await sleep(effort.restMs)
  book.add(subject, 'idleRss', bench.bridge.rss)
  await warmUp(bench, effort)
  await measureEvents(bench, subject, effort, book)
  await measureCommands(bench, subject, effort, book)
}

/**
 * Runs load before the measurement, because a bridge runs for months, and its first seconds do not matter. V8 compiles
 * hot code on other threads. After a shorter warm-up, this took up to 35 µs per event.
 */
async function warmUp(bench: Bench, { steady, commands }: Effort): Promise<void> {
  await burst(bench, BURST)
  // The bridge combines the events of a burst. At this rate, it publishes each event.
  await burst(bench, 5 * steady, { perSecond: 2000 })
  await askAll(bench, 3 * commands)
}

/** Measures the time from the first event until the last state of each app has arrived, and the CPU time per event. */
export async function burst(bench: Bench, events: number, options?: BurstOptions) {
  const cpuBefore = bench.bridge.cpuMs
  const { began, last } = bench.hub.burst(events, options)
  const seen = await bench.arrivals.sees(last)
  const ms = seen - (await began)
  // Wait for work that is still in progress, because its cost belongs to the events.
  await sleep(200)
  return { ms, cpuUs: ((bench.bridge.cpuMs - cpuBefore) * 1000) / events }
}

async function eventTimes({ hub, arrivals }: Bench, { samples }: Effort): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < samples; i += 1) {
    const { began, last } = hub.burst(1)
    times.push((await arrivals.sees(last)) - (await began))
  }
  return times
}

async function measureEvents(bench: Bench, subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  const cpuBefore = bench.bridge.cpuMs
  const times = await eventTimes(bench, effort)
  book.add(subject, 'eventCpuUs', ((bench.bridge.cpuMs - cpuBefore) * 1000) / times.length)
  book.add(subject, 'eventP50', percentile(times, 0.5))
  book.add(subject, 'eventP99', percentile(times, 0.99))
  // Measure the steady rate before the bursts, because V8 collects their garbage in the following seconds.
  book.add(subject, 'steadyCpuUs', (await burst(bench, effort.steady, { perSecond: 100 })).cpuUs)
  for (let i = 0; i < effort.bursts; i += 1) {
    const { ms, cpuUs } = await burst(bench, BURST)
    book.add(subject, 'burstMs', ms)
    book.add(subject, 'burstCpuUs', cpuUs)
  }
  book.add(subject, 'eventfulCpuUs', (await burst(bench, BURST, { eventful: true })).cpuUs)
  if (bench.bridge.port === 0) return
  // Read the live channel, as an open page does.
  const page = new WebSocket(`ws://127.0.0.1:${bench.bridge.port}/api/live`)
  await once(page, 'message')
  page.resume()
  book.add(subject, 'viewedCpuUs', (await burst(bench, effort.steady, { perSecond: 100 })).cpuUs)
  page.close()
  await once(page, 'close')
}

const enable = (i: number) => `hub2mqtt/home/app/net.population.app${String(i % APPS).padStart(4, '0')}/cmd/enable`

/** Sends commands to the apps in turn, from several clients in parallel that each wait for their answer. */
async function askAll(bench: Bench, commands: number): Promise<void> {
  let sent = 0
  const client = async () => {
    while (sent < commands) await bench.arrivals.ask(enable(sent++))
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

async function commandTimes({ arrivals }: Bench, { samples }: Effort): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < samples; i += 1) times.push(await arrivals.ask(enable(i)))
  return times
}

async function measureCommands(bench: Bench, subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  const times = await commandTimes(bench, effort)
  book.add(subject, 'commandP50', percentile(times, 0.5))
  book.add(subject, 'commandP99', percentile(times, 0.99))
  const started = now()
  book.add(subject, 'commandCpuUs', await commandCpuUs(bench, effort))
  book.add(subject, 'commandsPerSecond', effort.commands / ((now() - started) / 1000))
}

async function commandCpuUs(bench: Bench, { commands }: Effort): Promise<number> {
  const cpuBefore = bench.bridge.cpuMs
  await askAll(bench, commands)
  return ((bench.bridge.cpuMs - cpuBefore) * 1000) / commands
}

/**
 * Runs all processes on one core. With several cores, the scheduler's placement of four processes that wake each other
 * can matter more than the work of the programs.
 */
export function measureOnOneCore(subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  return onOneCore(async () => {
    await using bench = await startBench({ subject, apps: APPS })
    await warmUp(bench, effort)
    book.add(subject, 'oneCoreEventP50', percentile(await eventTimes(bench, effort), 0.5))
    book.add(subject, 'oneCoreCommandP50', percentile(await commandTimes(bench, effort), 0.5))
    book.add(subject, 'oneCoreCommandCpuUs', await commandCpuUs(bench, effort))
  })
}

export async function measureLargeStart(subject: SubjectName, book: Book): Promise<void> {
  await using bench = await startBench({ subject, apps: 1000, settled: false })
  book.add(subject, 'start1000Ms', bench.startMs)
}

/** Measures by how much a million events increase the memory of the process at rest. */
export async function measureManyEvents(subject: SubjectName, effort: Effort, book: Book): Promise<void> {
  await using bench = await startBench({ subject, apps: APPS })
  await sleep(effort.restMs)
  const before = bench.bridge.rss
  for (let left = effort.manyEvents; left > 0; left -= BURST) await burst(bench, Math.min(left, BURST))
  await sleep(effort.restMs)
  book.add(subject, 'addedRss', bench.bridge.rss - before)
}

export async function measureRestart(book: Book): Promise<void> {
  await using bench = await startBench({ subject: 'hub2mqtt', apps: APPS })
  const { state, discovery } = await restart(bench)
  book.add('hub2mqtt', 'restartState', state)
  book.add('hub2mqtt', 'restartDiscovery', discovery)
}

export async function measureIdle(effort: Effort, book: Book): Promise<void> {
  await using bench = await startBench({ subject: 'hub2mqtt', apps: APPS })
  await sleep(effort.restMs)
  const before = bench.bridge.cpuMs
  const ms = effort.idleMinutes * 60_000
  await sleep(ms)
  book.add('hub2mqtt', 'idleCpuShare', (bench.bridge.cpuMs - before) / ms)
}
