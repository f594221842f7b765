/**
 * Detects apps whose memory usage grows and does not fall. Compares the minimum of every twenty minutes over six hours,
 * so that memory that the app frees from time to time does not count.
 */

const MINUTE_MS = 60_000
const MINUTES = 20
const BUCKET_MS = MINUTES * MINUTE_MS
/** The number of buckets in six hours. */
const MAX_BUCKETS = 18
const MIN_BUCKETS = 3
/** A smaller rise is considered noise. */
const MIN_RISE_BYTES = 4 * 1_048_576
/** A fall by this fraction of the highest level means that memory was freed. */
const MIN_FALL = 0.1
/** A level up to this multiple of an earlier peak counts as equal to that peak. */
const SAME_LEVEL = 1.05
/** Minimum rise of each step, as a fraction of the average rise per step. */
const MIN_STEP = 0.25
/** `size`: buckets per step. Memory levels off if the later half's growth is below `steady` × the earlier half's. */
const HOURS = { size: 3, steady: 0.8 }
const EARLY = { size: 2, steady: 0.6 }
/** Without a known limit, a rise of at least this fraction of the initial level is reported. */
const LARGE_RISE = 0.25
const WINDOW_HOURS = (MAX_BUCKETS * MINUTES) / 60
const HORIZON_HOURS = 12
/** Memory that has grown for only two hours is reported if it would reach the limit within this time. */
const EARLY_HOURS = 1
const EARLY_BUCKETS = 6
/** Minimum change for which a new trend is published, as a fraction and in bytes per hour. */
const SHOWN_STEP = { part: 0.25, bytes: 64 * 1024 }

/** A time in `clock.elapsed()` milliseconds, and the bytes used at that time. */
export type MemorySample = readonly [at: number, bytes: number]

/** Data that is kept for each app in addition to the samples. */
export interface Memory {
  /** Offset of the app's buckets, in milliseconds. */
  readonly phase: number
  /** Samples before this time do not count, in `clock.elapsed()` milliseconds. */
  readonly since: number
  bucket: number
  /** The highest level from which the memory was freed without a restart; 0 if none so far. */
  peak: number
  /** The highest level since memory was last freed. */
  top: number
}

/** @param id the app's id, which determines the offset, so that no single read completes the buckets of all apps */
export function noMemory(id: string, since = Number.NEGATIVE_INFINITY): Memory {
  let hash = 0x811c9dc5
  for (const char of id) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
  const phase = ((hash >>> 0) % MINUTES) * MINUTE_MS
  return { phase, since, bucket: Number.NEGATIVE_INFINITY, peak: 0, top: 0 }
}

const startOf = ({ phase }: Memory, at: number) => Math.floor((at - phase) / BUCKET_MS) * BUCKET_MS + phase

/** Returns the minimum of each full bucket, oldest first; `undefined` if no bucket has ended since the last call. */
export function levelsAt(
  memory: Memory,
  now: number,
  samples: (since: number) => readonly MemorySample[],
): readonly MemorySample[] | undefined {
  const bucket = startOf(memory, now)
  const before = memory.bucket
  if (bucket === before) return undefined
  memory.bucket = bucket
  if (before === Number.NEGATIVE_INFINITY) return undefined
  const levels: [start: number, least: number][] = []
  const found = samples(Math.max(memory.since, bucket - MAX_BUCKETS * BUCKET_MS))
  const [[first] = [bucket]] = found
  for (const [at, bytes] of found) {
    const start = startOf(memory, at)
    if (start < first || start >= bucket) continue
    const last = levels.at(-1)
    if (last?.[0] === start) last[1] = Math.min(last[1], bytes)
    else levels.push([start, bytes])
  }
  for (const [start, level] of levels) if (start >= before) follow(memory, level)
  return levels
}

function follow(memory: Memory, level: number): void {
  memory.top = Math.max(memory.top, level)
  if (memory.top - level < Math.max(MIN_FALL * memory.top, MIN_RISE_BYTES)) return
  memory.peak = Math.max(memory.peak, memory.top)
  memory.top = level
}

/** Returns the median slope of all pairs of points (Theil-Sen) in bytes per hour; `null` for less than an hour. */
export function trendOf(points: readonly MemorySample[]): number | null {
  if (points.length < MIN_BUCKETS) return null
  const slopes = points.flatMap(([at, bytes], i) =>
    points.slice(i + 1).map(([later, more]) => (more - bytes) / (later - at)),
  )
  return median(slopes) * 3_600_000
}

/**
 * Returns whether memory has risen in each step and is above `peak`. A rise over six hours counts if memory would reach
 * the limit within `HORIZON_HOURS` (without a known limit: if it has risen by `LARGE_RISE`). A rise over only two hours
 * counts if memory would reach the limit within `EARLY_HOURS`.
 * @param limit bytes; `undefined` if unknown
 */
export function isRising(
  levels: readonly MemorySample[],
  trend: number | null,
  limit: number | undefined,
  peak: number,
): boolean {
  const latest = levels.slice(-EARLY_BUCKETS)
  if (limit !== undefined && latest.length === EARLY_BUCKETS) {
    const hourly = trendOf(latest) ?? 0
    const isSoon = (latest.at(-1)?.[1] ?? 0) + hourly * EARLY_HOURS >= limit
    if (hourly > 0 && isSoon && climbs(latest, peak, EARLY)) return true
  }
  if (trend === null || trend <= 0 || levels.length < MAX_BUCKETS) return false
  const { start, level } = endsOf(levels)
  const isFar =
    limit === undefined ? trend * WINDOW_HOURS >= LARGE_RISE * start : level + trend * HORIZON_HOURS >= limit
  return isFar && climbs(levels, peak, HOURS)
}

function endsOf(levels: readonly MemorySample[]): { readonly start: number; readonly level: number } {
  const points = levels.map(([, bytes]) => bytes)
  return { start: median(points.slice(0, 3)), level: median(points.slice(-3)) }
}

/**
 * Whether the level is above every level from which memory was freed before, each group's minimum is above the previous
 * minimum, and the later half climbs about as fast as the earlier half.
 */
function climbs(levels: readonly MemorySample[], peak: number, { size, steady }: typeof HOURS): boolean {
  const { start, level } = endsOf(levels)
  const rise = level - start
  if (rise < MIN_RISE_BYTES || level <= SAME_LEVEL * peak) return false
  const points = levels.map(([, bytes]) => bytes)
  const least: number[] = []
  for (let at = points.length % size; at < points.length; at += size) {
    least.push(Math.min(...points.slice(at, at + size)))
  }
  const step = (MIN_STEP * rise) / (least.length - 1)
  if (least.some((value, i) => value - (least[i - 1] ?? Number.NEGATIVE_INFINITY) < step)) return false
  const middle = median(least)
  return (least.at(-1) ?? 0) - middle >= steady * (middle - (least[0] ?? 0))
}

function median(values: ArrayLike<number>): number {
  const sorted = new Float64Array(values).sort()
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}

/** Returns the trend to publish, rounded to two significant digits, or the previous value if both are close. */
export function shownTrend(before: number | null, now: number | null): number | null {
  if (now === null) return null
  const shown = Math.abs(now) < SHOWN_STEP.bytes ? 0 : Number(now.toPrecision(2))
  if (before === null) return shown
  const differs = Math.abs(shown - before)
  return differs >= SHOWN_STEP.bytes && differs >= SHOWN_STEP.part * Math.abs(before) ? shown : before
}
