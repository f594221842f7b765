/** Whether an app that runs should be restarted all the same: it uses too much, or gives no sign of life. */
import type { Reason } from '../contract/guard.ts'
import type { App } from '../model/app.ts'
import type { GuardConfig } from './settings.ts'

/** What a read of the list says of an app. */
interface Read {
  readonly app: App
  /** Whether the hub does not say any more what it uses, and does of others. */
  readonly isSilent: boolean
  /** Whether its web API has answered as expected since the read before; `undefined`: there was no answer. */
  readonly isAnswered: boolean | undefined
  /** For how long nothing of it has changed, in milliseconds. */
  readonly quietMs: number
}

interface Probe {
  readonly reason: Reason
  /** By app: what it must not exceed. An app without is not restarted. */
  readonly option: (guard: GuardConfig['guard']) => ReadonlyMap<string, number>
  /** Whether a read is a bad one; `undefined`: it does not say. */
  readonly judge: (read: Read, limit: number) => boolean | undefined
  /** One bad read is enough, and not only as many in a row as configuration says. */
  readonly once?: true
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
    once: true,
  },
]

/** What each probe may find of an app, in their order. */
export type Limits = readonly (number | undefined)[]

/** What reads in a row have found. */
export interface Probed {
  /** Bad reads in a row, by probe. */
  readonly failures: readonly number[]
  /** Whether the hub has told what the app uses since it runs: where it never does, that says nothing. */
  readonly hadUsage: boolean
  readonly isAnswered: boolean | undefined
}

export const UNPROBED: Probed = { failures: [], hadUsage: false, isAnswered: undefined }

/**
 * Takes in a read of the list.
 * @param tellsUsage whether the hub tells what others use
 */
export function probe(before: Probed, app: App, limits: Limits, tellsUsage: boolean, quietMs: number): Probed {
  if (app.state !== 'running') return UNPROBED
  const { isAnswered } = before
  const isMissing = app.memory_bytes === null && app.cpu_percent === null
  const read = { app, isSilent: isMissing && before.hadUsage && tellsUsage, isAnswered, quietMs }
  const failures = PROBES.map(({ judge, always }, i) => {
    const limit = limits[i] ?? (always && 0)
    const isBad = limit !== undefined && judge(read, limit)
    const count = before.failures[i] ?? 0
    return isBad === undefined ? count : isBad ? count + 1 : 0
  })
  return { failures, hadUsage: before.hadUsage || !isMissing, isAnswered: undefined }
}

/** Why the app should be restarted, and why it needs attention, if it does. */
export function foundBy({ failures }: Probed, limits: Limits, reads: number) {
  let found: Reason | undefined
  let noticed: Reason | undefined
  for (const [i, { reason, once, always }] of PROBES.entries()) {
    if ((failures[i] ?? 0) < (once ? 1 : reads)) continue
    if (limits[i] !== undefined) found ??= reason
    if (always) noticed ??= reason
  }
  return { found, noticed }
}
