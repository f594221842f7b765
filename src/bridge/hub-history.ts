/** Reads an app's CPU and memory usage from the hub's logs, for the time before the bridge started. */
import { type Clock, within } from '../base/clock.ts'
import type { Limiter } from '../base/limiter.ts'
import type { UsageHistory } from '../contract/crash.ts'
import type { InsightEntry, InsightLog } from '../hub/decode-evidence.ts'
import type { Hub } from '../hub/hub.ts'

const HOUR_MS = 3_600_000
/** Entries may be this far in the future, because the hub's clock may be ahead. */
const AHEAD_MS = 60_000
/** Maximum number of points per log, which covers a week at five-minute intervals. */
const MAX_POINTS = 2_016

const CPU = { id: 'cpu', units: '%', max: 10_000, digits: 1 }
const MEMORY = { id: 'memory', units: 'B', max: Number.MAX_SAFE_INTEGER, digits: 0 }
type Kind = typeof CPU

type Points = UsageHistory['cpu_percent']

interface Query {
  readonly hub: Pick<Hub, 'permits'> & { readonly client: Pick<Hub['client'], 'call'> }
  readonly app: string
  readonly hours: number
  readonly own: UsageHistory
  readonly largeReads: Limiter
  readonly clock: Clock
  /** When the command must be answered, in `clock.elapsed()` milliseconds. */
  readonly deadline: number
}

/** Returns the bridge's own history or, if it is too short and the hub's reaches further back, the hub's history. */
export async function usageHistory(query: Query): Promise<UsageHistory> {
  const { hub, hours, own, clock, deadline } = query
  const covered = clock.now() - hours * HOUR_MS + 2 * own.resolution_seconds * 1000
  if (startOf(own) * 1000 <= covered || hub.permits('getLogs') !== 'yes') return own
  // Wait only half of the remaining time, so that the bridge can still answer.
  const remaining = (deadline - clock.elapsed()) / 2
  const found = await within(clock, remaining, fromHub(query)).catch(() => undefined)
  return found !== undefined && startOf(found) < startOf(own) ? found : own
}

async function fromHub({ hub, app, hours, largeReads, clock, deadline }: Query): Promise<UsageHistory | undefined> {
  const owner = `homey:app:${app}`
  const logs = await largeReads.run({ deadline }, () => hub.client.call('getLogs', {}))
  const [cpu, memory] = [CPU, MEMORY].map((kind) => logs.find((log) => isOf(log, owner, kind)))
  if (cpu === undefined || memory === undefined) return undefined
  const resolution = hours === 1 ? 'lastHour' : hours <= 24 ? 'last24Hours' : 'last7Days'
  const entriesOf = ({ id }: InsightLog) => hub.client.call('getLogEntries', { owner, log: id, resolution })
  const [cpuEntries, memoryEntries] = await Promise.all([entriesOf(cpu), entriesOf(memory)])
  const now = clock.now()
  const points = (entries: readonly InsightEntry[], kind: Kind) =>
    pointsOf(entries, kind, now - hours * HOUR_MS, now + AHEAD_MS)
  const [cpu_percent, memory_bytes] = [points(cpuEntries, CPU), points(memoryEntries, MEMORY)]
  const seconds = distance(cpu_percent)
  const isUsable = seconds > 0 && memory_bytes.length > 0
  return isUsable ? { resolution_seconds: seconds, cpu_percent, memory_bytes, source: 'hub' } : undefined
}

/** Returns whether a log has this owner and kind. Older hubs name a log `cpu`, newer hubs `homey:app:<id>:cpu`. */
function isOf({ owner, id, units }: InsightLog, of: string, kind: Kind): boolean {
  return owner === of && (id === kind.id || id === `${of}:${kind.id}`) && (units ?? kind.units) === kind.units
}

/** Returns the newest usable entries, at most one per second. */
function pointsOf(entries: readonly InsightEntry[], { max, digits }: Kind, from: number, until: number): Points {
  const usable = entries.filter(([at, value]) => at >= from && at <= until && value >= 0 && value <= max)
  const bySecond = new Map(usable.map(([at, value]) => [Math.floor(at / 1000), Number(value.toFixed(digits))]))
  return [...bySecond].slice(-MAX_POINTS)
}

/** Returns the median number of seconds between points; 0 if unknown. */
function distance(points: Points): number {
  const gaps = points.slice(1).map(([at], i) => at - (points[i]?.[0] ?? at))
  return gaps.sort((one, other) => one - other)[Math.floor(gaps.length / 2)] ?? 0
}

/** Returns when the history begins, in epoch seconds. */
const startOf = ({ cpu_percent: [cpu], memory_bytes: [memory] }: UsageHistory) =>
  Math.min(cpu?.[0] ?? Number.POSITIVE_INFINITY, memory?.[0] ?? Number.POSITIVE_INFINITY)
