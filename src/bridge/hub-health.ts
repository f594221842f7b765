import type { Clock } from '../base/clock.ts'
import type { HubHealth } from '../contract/crash.ts'
import { SAME_BOOT_MS } from '../contract/guard.ts'
import type { OperationName, Result } from '../hub/operations.ts'

/** A figure is `null` if it is not permitted or not usable, and `undefined` if it has not been read yet. */
export type Figures = { [N in OperationName]?: Result<N> | null }

/** The hub's latest start. It is kept until the next start, because each reading gives a slightly different time. */
export interface Boot {
  /** When the hub started, in epoch milliseconds. */
  readonly at: number
  /** When `uptimeSeconds` was first read, in `clock.elapsed()` milliseconds. */
  readonly readAt: number
  readonly uptimeSeconds: number
}

const ROUNDING_SECONDS = 1

/**
 * The hub has restarted if its uptime decreases, or is less than the time since the previous reading. An unchanged
 * uptime proves nothing, because the uptime may be cached or counted in hours.
 * @param formerAt the start time published by an earlier run; kept if it belongs to the same start of the hub
 */
export function bootOf(before: Boot | undefined, uptimeSeconds: number, clock: Clock, formerAt?: number): Boot {
  if (uptimeSeconds === before?.uptimeSeconds) return before
  const readAt = clock.elapsed()
  const isSame =
    before !== undefined &&
    uptimeSeconds >= before.uptimeSeconds - ROUNDING_SECONDS &&
    uptimeSeconds * 1000 > readAt - before.readAt - SAME_BOOT_MS
  const at = isSame ? before.at : Math.round((clock.now() - uptimeSeconds * 1000) / 1000) * 1000
  return { at: formerAt !== undefined && isSameBoot(at, formerAt) ? formerAt : at, readAt, uptimeSeconds }
}

export const isSameBoot = (one: number, other: number): boolean => Math.abs(one - other) < SAME_BOOT_MS

/** Returns the current uptime in seconds, independent of changes to the system clock. */
export const uptimeOf = ({ uptimeSeconds, readAt }: Boot, clock: Clock): number =>
  Math.round(uptimeSeconds + (clock.elapsed() - readAt) / 1000)

export function healthOf(figures: Figures, appsMemory: number | null, boot: Boot | undefined): HubHealth {
  const { getInfo: info, getMemoryInfo: memory, getStorageInfo: storage, getLastBackup, getUpdates } = figures
  const [one = null, five = null, fifteen = null] = info?.load ?? []
  return {
    memory_total_bytes: memory?.total ?? info?.memory.total ?? null,
    memory_free_bytes: memory?.free ?? info?.memory.free ?? null,
    load_1m: one,
    load_5m: five,
    load_15m: fifteen,
    cpus: info?.cpus ?? null,
    temperature_celsius: info?.temperatureCelsius ?? null,
    storage_total_bytes: storage?.total ?? null,
    storage_free_bytes: storage?.free ?? null,
    apps_memory_bytes: appsMemory,
    undervoltage: info?.undervoltage ?? null,
    throttled: info?.throttled ?? null,
    uptime_seconds: info?.uptimeSeconds ?? null,
    booted_at: boot === undefined ? null : new Date(boot.at).toISOString(),
    last_backup_at: getLastBackup ?? null,
    firmware_update: getUpdates ?? null,
  }
}

/** Returns whether a figure has changed significantly. Ignores the uptime, and changes of less than a tenth. */
export function hasMoved(before: HubHealth, after: HubHealth): boolean {
  const former = new Map<string, unknown>(Object.entries(before))
  return Object.entries(after).some(([key, value]) => {
    const was = former.get(key)
    if (key === 'uptime_seconds' || value === was) return false
    if (typeof value !== 'number' || typeof was !== 'number') return true
    // Tolerate rounding, because a tenth of a number is rarely exact in binary.
    return Math.abs(value - was) >= 0.1 * Math.abs(was) - 1e-9 * Math.abs(was)
  })
}
