/**
 * Detects whether an app's memory grows and is not freed. Keeps the minimum of every 20 minutes for six hours: memory
 * that an app frees now and then does not count, memory that it never frees does.
 */

const BUCKET_MS = 20 * 60_000
/** Six hours. */
const MAX_BUCKETS = 18
/** Minimum number of buckets for a trend. */
const MIN_BUCKETS = 3
const HOUR_BUCKETS = 3
/** A smaller rise is noise. */
const MIN_RISE_BYTES = 4 * 1_048_576
/** A fall by this fraction of the level means that memory was freed. */
const MIN_FALL = 0.1
/** A level that was reached before and freed is reached again with some noise. */
const SAME_LEVEL = 1.05
/** Relative to a steady climb: the minimum for each step, and for the later half. Less means levelling off. */
const MIN_STEP = 0.25
const STEADY = 0.8
/** Without a known limit, a rise is reported above this fraction. */
const LARGE_RISE = 0.25
const HORIZON_HOURS = 12
/** An app that has run for less than six hours is reported only shortly before its limit. */
const EARLY_HOURS = 1
const EARLY_BUCKETS = 6
/** The minimum difference to publish a new trend, as a fraction and in bytes per hour. */
const SHOWN_STEP = { part: 0.25, bytes: 64 * 1024 }

interface Bucket {
  readonly at: number
  /** Bytes. */
  least: number
}

/** The memory usage of an app since its start. */
export interface Memory {
  /** Offset of its buckets, in milliseconds. */
  readonly phase: number
  readonly buckets: Bucket[]
  /** The highest level after which memory was freed; 0 if there is none. */
  peak: number
  /** The highest level since memory was last freed. */
  top: number
}

/** @param id of the app: buckets of different apps begin at different times, so that no read completes them all */
export function noMemory(id: string): Memory {
  let hash = 0x811c9dc5
  for (const char of id) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return { phase: (hash >>> 0) % BUCKET_MS, buckets: [], peak: 0, top: 0 }
}

/** Adds a reading. Returns whether a bucket is complete, so that the trend may change. */
export function remember(memory: Memory, at: number, bytes: number): boolean {
  const { buckets, phase } = memory
  const start = Math.floor((at - phase) / BUCKET_MS) * BUCKET_MS
  const last = buckets.at(-1)
  if (last?.at === start) {
    last.least = Math.min(last.least, bytes)
    return false
  }
  if (last !== undefined) follow(memory, last.least)
  buckets.push({ at: start, least: bytes })
  // The newest one is not complete.
  if (buckets.length > MAX_BUCKETS + 1) buckets.shift()
  return last !== undefined
}

function follow(memory: Memory, level: number): void {
  memory.top = Math.max(memory.top, level)
  if (memory.top - level < Math.max(MIN_FALL * memory.top, MIN_RISE_BYTES)) return
  memory.peak = Math.max(memory.peak, memory.top)
  memory.top = level
}

const full = ({ buckets }: Memory) => buckets.slice(0, -1)

/** The trend in bytes per hour by the Theil–Sen estimator: the median of all slopes. `null` before the first hour. */
export function trendOf(memory: Memory): number | null {
  const points = full(memory)
  if (points.length < MIN_BUCKETS) return null
  const slopes = new Float64Array((points.length * (points.length - 1)) / 2)
  let next = 0
  for (const [i, one] of points.entries()) {
    for (const other of points.slice(i + 1)) slopes[next++] = (other.least - one.least) / (other.at - one.at)
  }
  return median(slopes) * 3_600_000
}

/**
 * Whether memory grows towards the limit, or by much if there is none. Each hour's minimum must be above that of the
 * hour before, and the level must be higher than any that the app has freed before.
 * @param trend result of `trendOf`
 * @param limit bytes; `undefined` if unknown
 */
export function isRising(memory: Memory, trend: number | null, limit: number | undefined): boolean {
  if (trend === null || trend <= 0) return false
  const points = full(memory).map(({ least }) => least)
  const level = median(points.slice(-3))
  const start = median(points.slice(0, 3))
  const rise = level - start
  if (rise < MIN_RISE_BYTES || level <= SAME_LEVEL * memory.peak) return false
  if (points.length < MAX_BUCKETS) {
    const soon = limit !== undefined && (points.at(-1) ?? 0) + trend * EARLY_HOURS >= limit
    return soon && points.length >= EARLY_BUCKETS && climbs(points, 2, rise)
  }
  const far = limit === undefined ? rise >= LARGE_RISE * start : level + trend * HORIZON_HOURS >= limit
  return far && climbs(points, HOUR_BUCKETS, rise)
}

/** Whether each group's minimum is above the previous one, and the later half climbs like the earlier one. */
function climbs(points: readonly number[], size: number, rise: number): boolean {
  const least: number[] = []
  for (let at = points.length % size; at < points.length; at += size) {
    least.push(Math.min(...points.slice(at, at + size)))
  }
  const step = (MIN_STEP * rise) / (least.length - 1)
  if (least.some((value, i) => value - (least[i - 1] ?? Number.NEGATIVE_INFINITY) < step)) return false
  const middle = median(least)
  return (least.at(-1) ?? 0) - middle >= STEADY * (middle - (least[0] ?? 0))
}

function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

/** The trend to publish: two digits, and the previous value if nearly the same, so that not each read changes it. */
export function shownTrend(before: number | null, now: number | null): number | null {
  if (now === null) return null
  const shown = Math.abs(now) < SHOWN_STEP.bytes ? 0 : Number(now.toPrecision(2))
  if (before === null) return shown
  const differs = Math.abs(shown - before)
  return differs >= SHOWN_STEP.bytes && differs >= SHOWN_STEP.part * Math.abs(before) ? shown : before
}
