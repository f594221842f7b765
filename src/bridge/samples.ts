/**
 * Stores CPU and memory usage of all apps for a week: one bucket per minute for six and a half hours, and one bucket
 * per ten minutes for seven days. Uses `clock.elapsed`, so that setting the system clock has no effect.
 */
import { type Clock, wallOffset } from '../base/clock.ts'
import type { App, Apps } from '../hub/app.ts'
import type { AppManager, AppsUpdate } from '../hub/app-manager.ts'
import type { Hub } from '../hub/hub.ts'

const MINUTE_MS = 60_000
const MAX_BYTES = 16 * 1024 * 1024
const LONG = 10

/** The numbers of short and long buckets, and the length of a short bucket. */
export interface Size {
  readonly minutes: number
  readonly short: number
  readonly long: number
}

/** With more apps, each bucket covers more minutes, to limit the memory. The last size has no long buckets. */
export const SIZES: readonly [Size, ...Size[]] = [
  { minutes: 1, short: 390, long: 1008 },
  { minutes: 2, short: 195, long: 504 },
  { minutes: 4, short: 98, long: 252 },
  { minutes: 8, short: 49, long: 126 },
  { minutes: 16, short: 25, long: 63 },
  { minutes: 16, short: 25, long: 0 },
]

/** Indexes in an app's record. `CPU` and `MEMORY` are the latest reading. From `HEAD`, each bucket has two numbers. */
const BUCKET = 0
const READINGS = 1
const CPU = 2
const MEMORY = 3
const HEAD = 4

const lengthOf = ({ short, long }: Size) => HEAD + 2 * (short + long)
export const bytesOf = (size: Size) => lengthOf(size) * Float32Array.BYTES_PER_ELEMENT

/**
 * A bucket's start (epoch milliseconds), CPU (percent of one core) and memory; `null` if unknown or not running.
 */
export type Sample = [at: number, cpu: number | null, memory: number | null]

export interface History {
  readonly seconds: number
  /** The samples, oldest first. The last sample may still change. */
  readonly samples: Sample[]
}

export class Samples {
  readonly clock: Clock
  size = SIZES[0]
  count = 0
  /** The difference between epoch milliseconds and `clock.elapsed`. */
  readonly offset: () => number
  readonly #hubs = new Map<string, HubSamples>()

  constructor(clock: Clock) {
    this.clock = clock
    this.offset = wallOffset(clock)
  }

  follow(name: string, hub: Pick<Hub, 'subscribe'> & { readonly apps: Pick<AppManager, 'all' | 'subscribe'> }): void {
    const samples = new HubSamples(this, hub.apps.all)
    this.#hubs.set(name, samples)
    hub.apps.subscribe(samples.take)
    hub.subscribe(({ online }) => {
      if (!online) samples.pause()
    })
  }

  /** Returns the samples of the last `ms` milliseconds, in short buckets if these reach back far enough. */
  read(hub: string, app: string, ms: number): History {
    return (this.#hubs.get(hub) ?? new HubSamples(this, new Map())).read(app, ms)
  }

  /** Returns the start and the highest memory usage of each short bucket since a `clock.elapsed` time. */
  memory(hub: string, app: string, since: number): [at: number, bytes: number][] {
    const offset = this.offset()
    // Include the bucket starting at `since`.
    const { samples } = this.read(hub, app, this.clock.elapsed() - since + 1)
    return samples.flatMap(([at, , bytes]): [number, number][] =>
      bytes === null || at - offset < since ? [] : [[at - offset, bytes]],
    )
  }

  forget(hub: string): void {
    this.#hubs.get(hub)?.end()
    this.#hubs.delete(hub)
  }

  /** Adds the record of an app to `own`. Returns `undefined` if the memory limit is reached. */
  newRecord(own: Map<string, Float32Array>, app: string): Float32Array | undefined {
    const fits = (size: Size) => (this.count + 1) * bytesOf(size) <= MAX_BYTES
    while (!fits(this.size)) {
      const next = SIZES[SIZES.indexOf(this.size) + 1]
      if (next === undefined) return undefined
      for (const { records } of this.#hubs.values()) {
        for (const [id, record] of records) records.set(id, widened(record, this.size, next))
      }
      this.size = next
    }
    this.count += 1
    const record = emptyRecord(this.size)
    own.set(app, record)
    return record
  }

  *all(ms: number): Generator<readonly [of: { readonly hub: string; readonly app: string }, samples: Sample[]]> {
    for (const [hub, of] of this.#hubs) {
      for (const app of of.records.keys()) {
        const { samples } = of.read(app, ms)
        if (samples.length > 0) yield [{ hub, app }, samples]
      }
    }
  }
}

class HubSamples {
  readonly records = new Map<string, Float32Array>()
  readonly #all: Samples
  readonly #apps: Apps
  #hasEnded = false

  constructor(all: Samples, apps: Apps) {
    this.#all = all
    this.#apps = apps
  }

  /** Allocates nothing, because it is called on each change to an app's usage. */
  readonly take = ({ changes, read }: AppsUpdate): void => {
    if (this.#hasEnded) return
    const now = this.#all.clock.elapsed()
    for (const { id, after } of changes) {
      if (after === undefined) this.#all.count -= Number(this.records.delete(id))
      else if (!read) this.#add(after, now)
    }
    // A list is also a reading of the apps whose usage has not changed.
    if (read) for (const app of this.#apps.values()) this.#add(app, now)
  }

  end(): void {
    this.#hasEnded = true
    this.#all.count -= this.records.size
    this.records.clear()
  }

  /** Marks the usage as unknown while the hub is offline. */
  pause(): void {
    const { clock, size } = this.#all
    const bucket = Math.floor(clock.elapsed() / (size.minutes * MINUTE_MS))
    for (const record of this.records.values()) {
      advance(record, size, bucket)
      record.fill(Number.NaN, CPU, HEAD)
    }
  }

  read(id: string, ms: number): History {
    const { clock, size } = this.#all
    const record = this.records.get(id)
    const offset = this.#all.offset()
    const width = size.minutes * MINUTE_MS
    const kind = size.long === 0 || ms <= size.short * width ? 'short' : 'long'
    const step = kind === 'short' ? width : LONG * width
    const samples: Sample[] = []
    if (record === undefined) return { seconds: step / 1000, samples }
    const now = clock.elapsed()
    advance(record, size, Math.floor(now / width))
    close(record, size)
    const last = Math.floor(now / step)
    const count = Math.min(Math.ceil(ms / step), size[kind])
    for (let bucket = Math.max(0, last - count + 1); bucket <= last; bucket += 1) {
      const at = placeOf(size, kind, bucket)
      const [cpu = Number.NaN, memory = Number.NaN] = [record[at], record[at + 1]]
      const isKnown = !(Number.isNaN(cpu) && Number.isNaN(memory))
      if (samples.length === 0 && !isKnown) continue
      const shown = Number.isNaN(cpu) ? null : Math.round(cpu * 10) / 10
      samples.push([offset + bucket * step, shown, Number.isNaN(memory) ? null : memory])
    }
    return { seconds: step / 1000, samples }
  }

  #add({ id, cpu_percent, memory_bytes }: App, now: number): void {
    const record = this.records.get(id) ?? this.#all.newRecord(this.records, id)
    if (record === undefined) return
    const { size } = this.#all
    const bucket = Math.floor(now / (size.minutes * MINUTE_MS))
    if (record[BUCKET] !== bucket) advance(record, size, bucket)
    const cpu = cpu_percent ?? Number.NaN
    const memory = memory_bytes ?? Number.NaN
    record[CPU] = cpu
    record[MEMORY] = memory
    // For a stopped app, keep the earlier readings in this bucket.
    if (cpu_percent === null && memory_bytes === null) return
    const at = HEAD + 2 * (bucket % size.short)
    const mean = record[at] ?? Number.NaN
    const peak = record[at + 1] ?? Number.NaN
    const readings = record[READINGS] ?? 0
    // The first reading replaces the value that was carried over from the previous bucket.
    if (readings === 0 || Number.isNaN(mean)) record[at] = cpu
    else if (cpu_percent !== null) record[at] = mean + (cpu - mean) / (readings + 1)
    if (readings === 0 || Number.isNaN(peak) || memory > peak) record[at + 1] = memory
    record[READINGS] = readings + 1
  }
}

const emptyRecord = (size: Size) => new Float32Array(lengthOf(size)).fill(Number.NaN)

type Kind = 'short' | 'long'

/** Returns the index of a bucket in the record. The buckets form a ring buffer. */
function placeOf({ short, long }: Size, kind: Kind, bucket: number): number {
  return kind === 'short' ? HEAD + 2 * (bucket % short) : HEAD + 2 * (short + (bucket % long))
}

/** Hubs report only changes, so skipped buckets are filled with the latest reading. */
function advance(record: Float32Array, size: Size, to: number): void {
  const [at, cpu, memory] = [record[BUCKET] ?? Number.NaN, record[CPU] ?? Number.NaN, record[MEMORY] ?? Number.NaN]
  // If the bucket is still current, for example in a call from `read`, keep its number of readings.
  if (at === to) return
  record[READINGS] = 0
  // After a longer gap, all buckets have the same value, so filling each of them once is enough.
  const first = Number.isNaN(at) ? to : Math.max(at + 1, to - LONG * Math.max(size.long, size.short))
  for (let bucket = first; bucket <= to; bucket += 1) {
    if (bucket % LONG === 0) close(record, size)
    const place = placeOf(size, 'short', bucket)
    record[place] = cpu
    record[place + 1] = memory
    record[BUCKET] = bucket
  }
}

/** Computes the current long bucket from its short buckets so far. */
function close(record: Float32Array, size: Size): void {
  const last = record[BUCKET] ?? Number.NaN
  if (size.long === 0 || Number.isNaN(last)) return
  const at = placeOf(size, 'long', Math.floor(last / LONG))
  let [sum, known, peak] = [0, 0, Number.NaN]
  for (let bucket = last - (last % LONG); bucket <= last; bucket += 1) {
    const place = placeOf(size, 'short', bucket)
    const [cpu = Number.NaN, memory = Number.NaN] = [record[place], record[place + 1]]
    if (!Number.isNaN(cpu)) {
      sum += cpu
      known += 1
    }
    if (!(memory <= peak) && !Number.isNaN(memory)) peak = memory
  }
  record[at] = known === 0 ? Number.NaN : sum / known
  record[at + 1] = peak
}

function widened(old: Float32Array, from: Size, to: Size): Float32Array {
  const record = emptyRecord(to)
  const ratio = to.minutes / from.minutes
  record.set(old.subarray(0, HEAD))
  const last = old[BUCKET] ?? Number.NaN
  if (Number.isNaN(last)) return record
  record[BUCKET] = Math.floor(last / ratio)
  for (const kind of ['short', 'long'] as const) {
    const newest = kind === 'short' ? last : Math.floor(last / LONG)
    const oldest = Math.max(newest - from[kind] + 1, ratio * (Math.floor(newest / ratio) - to[kind] + 1), 0)
    for (let bucket = oldest; bucket <= newest && to[kind] > 0; bucket += 1) {
      const [place, at] = [placeOf(from, kind, bucket), placeOf(to, kind, Math.floor(bucket / ratio))]
      const [cpu = Number.NaN, memory = Number.NaN] = [old[place], old[place + 1]]
      const { [at]: mean = Number.NaN, [at + 1]: peak = Number.NaN } = record
      if (!Number.isNaN(cpu)) record[at] = Number.isNaN(mean) ? cpu : (mean + cpu) / 2
      if (!Number.isNaN(memory) && !(memory <= peak)) record[at + 1] = memory
    }
  }
  return record
}
