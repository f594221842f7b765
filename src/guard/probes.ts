/** Whether an app that runs should be restarted all the same: it uses too much, or gives no sign of life. */
import type { Reason } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'

export interface Limits {
  /** Bytes. */
  readonly memory: number | undefined
  /** Per cent of one core. */
  readonly cpu: number | undefined
  /** How long nothing may change, in milliseconds. */
  readonly change: number | undefined
  /** Reads in a row that must agree. */
  readonly reads: number
  /** Whether silence is no reason for a restart. */
  readonly mayBeSilent: boolean
}

/** What reads in a row have found. */
export interface Probed {
  readonly memory: number
  readonly cpu: number
  readonly silent: number
  /** Questions to its web API that it did not answer as expected. */
  readonly web: number
  /** Whether the hub has told what the app uses since it runs: where it never does, that says nothing. */
  readonly hadUsage: boolean
}

export const UNPROBED: Probed = { memory: 0, cpu: 0, silent: 0, web: 0, hadUsage: false }

/**
 * Takes in a read of the list.
 * @param tellsUsage whether the hub tells what others use
 */
export function probe(before: Probed, app: App, limits: Limits, tellsUsage: boolean): Probed {
  if (app.state !== 'running') return UNPROBED
  const { memory_bytes: memory, cpu_percent: cpu } = app
  const isMissing = memory === null && cpu === null
  const above = (value: number | null, limit: number | undefined) =>
    value !== null && limit !== undefined && value > limit
  return {
    memory: above(memory, limits.memory) ? before.memory + 1 : 0,
    cpu: above(cpu, limits.cpu) ? before.cpu + 1 : 0,
    web: before.web,
    silent: isMissing && before.hadUsage && tellsUsage ? before.silent + 1 : 0,
    hadUsage: before.hadUsage || !isMissing,
  }
}

/** Takes in whether the app's web API answered as expected. */
export function answered(before: Probed, isGood: boolean): Probed {
  return { ...before, web: isGood ? 0 : before.web + 1 }
}

/** Why the app should be restarted, if it should. `quietMs`: since when nothing of it has changed. */
export function foundBy(
  { memory, cpu, silent, web }: Probed,
  { reads, change, mayBeSilent }: Limits,
  quietMs: number,
): Reason | undefined {
  if (memory >= reads) return 'memory_limit'
  if (cpu >= reads) return 'cpu_limit'
  if (silent >= reads && !mayBeSilent) return 'silent'
  if (web >= reads) return 'probe'
  return change !== undefined && quietMs > change ? 'probe' : undefined
}
