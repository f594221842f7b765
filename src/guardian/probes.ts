/** Whether a running app should be restarted: it uses too much, or shows no sign of life. */
import type { Reason } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import type { GuardConfig, Patterns } from './settings.ts'

/** What a read of the list says of an app. */
interface Read {
  readonly app: App
  /** Whether the hub no longer says what it uses, but does so for others. */
  readonly isSilent: boolean
  /** Whether its web API has answered as expected since the read before; `undefined`: there was no answer. */
  readonly isAnswered: boolean | undefined
  /** For how long nothing of it has changed, and too many of its devices have been unavailable, in milliseconds. */
  readonly quietMs: number
  readonly awayMs: number
}

interface Probe {
  readonly reason: Reason
  /** By app: what it must not exceed. An app without is not restarted. */
  readonly option: (guard: GuardConfig['guard']) => ReadonlyMap<string, number>
  /** Whether a read is a bad one; `undefined`: unknown. */
  readonly judge: (read: Read, limit: number) => boolean | undefined
  /** Follows from time: one bad read is enough, and not only as many in a row as configuration says. */
  readonly timed?: true
  /** An app without a limit needs attention instead. */
  readonly always?: true
}

const named = (patterns: Iterable<string>) => new Map([...patterns].map((pattern) => [pattern, 0]))

/** From the reason that says the most to the one that says the least. */
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

/** What reads in a row have found. */
export class Probed {
  /** Bad reads in a row, by probe. */
  readonly failures: readonly number[] = []
  /** Whether the hub has said what the app uses since it runs: where it never does, its silence means nothing. */
  readonly hadUsage: boolean = false
  readonly isAnswered: boolean | undefined
  /** Why the app should be restarted, and why it needs attention, if it does. */
  readonly found: Reason | undefined
  readonly noticed: Reason | undefined
}

export const UNPROBED: Probed = { ...new Probed() }

/** What else a look at an app goes by. */
export interface Look extends Pick<Read, 'quietMs' | 'awayMs'> {
  readonly limits: Patterns['limits']
  /** Reads in a row that have to be bad. */
  readonly reads: number
  /** Whether the hub says what other apps use; `undefined`: this is no read of the list. */
  readonly tellsUsage: boolean | undefined
}

/** What a read of the list, or time alone, adds to what was found. */
export function probe({ failures: before, hadUsage, isAnswered }: Probed, app: App, look: Look): Probed {
  const { limits, reads, tellsUsage } = look
  const isMissing = app.memory_bytes === null && app.cpu_percent === null
  const read = { ...look, app, isSilent: isMissing && hadUsage && tellsUsage === true, isAnswered }
  const failures: number[] = []
  let found: Reason | undefined
  let noticed: Reason | undefined
  for (const row of PROBES) {
    const limit = limits[failures.length]?.(app.id)
    const known = before[failures.length] ?? 0
    const count = tellsUsage === undefined && !row.timed ? known : badReads(row, known, read, limit)
    failures.push(count)
    if (count < (row.timed ? 1 : reads)) continue
    if (limit !== undefined) found ??= row.reason
    if (row.always) noticed ??= row.reason
  }
  const rest = tellsUsage === undefined ? { hadUsage, isAnswered } : { hadUsage: hadUsage || !isMissing }
  return { isAnswered: undefined, ...rest, failures, found, noticed }
}

/** The bad reads in a row so far. */
function badReads({ judge, always }: Probe, before: number, read: Read, limit: number | undefined): number {
  const isBad = limit === undefined && !always ? false : judge(read, limit ?? 0)
  return isBad === undefined ? before : isBad ? before + 1 : 0
}
