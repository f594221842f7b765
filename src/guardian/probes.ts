/** Probes determine whether to restart a running app because it uses too many resources or does not seem to work. */
import type { Reason } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import type { GuardConfig, Patterns } from './settings.ts'

interface Read {
  readonly app: App
  /** Whether the hub no longer reports the app's usage, although it reports the usage of other apps. */
  readonly isSilent: boolean
  /** Whether the app's web API has responded as expected since the previous read; `undefined` if this is unknown. */
  readonly isAnswered: boolean | undefined
  /** `quietMs`: time since the app last changed. `awayMs`: how long too many devices have been unavailable. */
  readonly quietMs: number
  readonly awayMs: number
}

interface Probe {
  readonly reason: Reason
  /** The limits by app pattern. An app without a limit is not restarted. */
  readonly option: (guard: GuardConfig['guard']) => ReadonlyMap<string, number>
  /** Returns whether a read is bad; `undefined` if unknown. */
  readonly judge: (read: Read, limit: number) => boolean | undefined
  /** Set for probes that measure time: one bad read is enough, regardless of the configured number of reads. */
  readonly timed?: true
  /** Set for probes that also apply to apps without a limit. These apps then need attention, not a restart. */
  readonly always?: true
}

const named = (patterns: Iterable<string>) => new Map([...patterns].map((pattern) => [pattern, 0]))

/** The probes, with the most specific reason first. */
export const PROBES: readonly Probe[] = [
  {
    reason: 'memory_limit',
    option: ({ memory_limit }) => memory_limit,
    judge: ({ app }, bytes) => (app.memory_bytes ?? 0) > bytes,
  },
  {
    reason: 'cpu_limit',
    option: ({ cpu_limit }) => cpu_limit,
    judge: ({ app }, percent) => (app.cpu_percent ?? 0) > percent,
  },
  { reason: 'silent', option: ({ silent }) => named(silent), judge: ({ isSilent }) => isSilent, always: true },
  {
    reason: 'probe',
    option: ({ probe }) => named(probe.keys()),
    judge: ({ isAnswered }) => (isAnswered === undefined ? undefined : !isAnswered),
  },
  {
    reason: 'probe',
    option: ({ change_limit }) => change_limit,
    judge: ({ quietMs }, limit) => quietMs > limit,
    timed: true,
  },
  {
    reason: 'devices_unavailable',
    option: ({ unavailable }) => new Map([...unavailable].map(([pattern, { for: ms }]) => [pattern, ms])),
    judge: ({ awayMs }, limit) => awayMs >= limit,
    timed: true,
  },
]

export class Probed {
  /** Number of consecutive bad reads, by probe. */
  readonly failures: readonly number[] = []
  /** Whether the hub has reported usage since the app started. If not, missing usage is no sign of a fault. */
  readonly hadUsage: boolean = false
  readonly isAnswered: boolean | undefined
  /** Why the app should be restarted (`found`) or needs attention (`noticed`); `undefined` otherwise. */
  readonly found: Reason | undefined
  readonly noticed: Reason | undefined
}

export const UNPROBED: Probed = { ...new Probed() }

export interface ProbeInput extends Pick<Read, 'quietMs' | 'awayMs'> {
  readonly limits: Patterns['limits']
  /** Number of consecutive bad reads after which a probe fails. */
  readonly reads: number
  /** Whether the hub reports the usage of any app; `undefined` if the call does not follow a read of the list. */
  readonly reportsUsage: boolean | undefined
}

/** Called after each read of the list of apps and, only for the timed probes, after each read of the devices. */
export function probe({ failures: before, hadUsage, isAnswered }: Probed, app: App, input: ProbeInput): Probed {
  const { limits, reads, reportsUsage } = input
  const isMissing = app.memory_bytes === null && app.cpu_percent === null
  const read = { ...input, app, isSilent: isMissing && hadUsage && reportsUsage === true, isAnswered }
  const failures: number[] = []
  let found: Reason | undefined
  let noticed: Reason | undefined
  for (const row of PROBES) {
    const limit = limits[failures.length]?.(app.id)
    const previous = before[failures.length] ?? 0
    const count = reportsUsage === undefined && !row.timed ? previous : badReads(row, previous, read, limit)
    failures.push(count)
    if (count < (row.timed ? 1 : reads)) continue
    if (limit !== undefined) found ??= row.reason
    if (row.always) noticed ??= row.reason
  }
  const rest = reportsUsage === undefined ? { hadUsage, isAnswered } : { hadUsage: hadUsage || !isMissing }
  return { isAnswered: undefined, ...rest, failures, found, noticed }
}

function badReads({ judge, always }: Probe, before: number, read: Read, limit: number | undefined): number {
  const isBad = limit === undefined && !always ? false : judge(read, limit ?? 0)
  return isBad === undefined ? before : isBad ? before + 1 : 0
}
