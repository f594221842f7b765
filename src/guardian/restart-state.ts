/** The guardian's state for one app and its transitions, as pure functions. */
import type { Crash, GoneApp, Reason } from '../contract/guard.ts'
import { isOwnRestart, sinceCalm, sinceReset } from './history.ts'
import type { GuardConfig } from './settings.ts'

/** After an app has run for this long, its earlier crashes and restarts no longer count. */
export const CALM_MS = 3_600_000
/** Maximum time for an app to start after a restart. */
export const START_MS = 60_000
/** A scheduled restart is skipped if it is late by more than this: no bridge ran, or the clock changed. */
export const MAX_LATE_MS = 5 * 60_000
/** Maximum number of restart times, and of versions, that are kept. */
const MAX_TIMES = 100

export class RestartState {
  /** Whether a command has turned watching on or off; `null` if the configuration decides. */
  readonly switched: boolean | null = null
  readonly phase: 'idle' | 'waiting' | 'restarting' | 'given_up' = 'idle'
  readonly why: Reason = 'unknown'
  /** Whether to restart the app even though it is running. */
  readonly forced: boolean = false
  /** Whether the app has crashed or was stopped by the hub, and has not run since. */
  readonly down: boolean = false
  /** When the next restart is due. All times are in `elapsed` milliseconds, which do not depend on the system clock. */
  readonly dueAt: number | null = null
  readonly sentAt: number | null = null
  /** Number of restarts since the guardian gave up. */
  readonly retries: number = 0
  /** Whether the app crashed in a storm, so that its next restart does not count against the limit. */
  readonly isSpared: boolean = false
  /** Number of restarts, since the last reset, that do not count towards the limit. */
  readonly spared: number = 0
  readonly restarts: number = 0
  /** Times of the restarts that count against the limit, since the count was last reset. */
  readonly recent: readonly number[] = []
  /** The app's versions since the count was last reset; empty until the version changes. */
  readonly versions: readonly string[] = []
  /** When the app started to run; `null` if the app is not running. */
  readonly upSince: number | null = null
  readonly snoozedUntil: number | null = null
  readonly lastCrash: Crash | null = null
}

export const UNTOUCHED: RestartState = { ...new RestartState() }

/** The configured limits for restarts. Durations are in milliseconds. */
export type RestartLimits = Pick<
  GuardConfig['guard'],
  'backoff' | 'backoff_max' | 'max_restarts' | 'hub_max_restarts' | 'window' | 'retry'
>

/** Returns the delay before a restart. Each restart doubles the delay, up to `backoff_max`. */
export function delayAfter(restarts: number, { backoff, backoff_max }: RestartLimits): number {
  return Math.min(backoff_max, backoff * 2 ** Math.min(restarts, 30))
}

export function countRecent(recent: readonly number[], now: number, { window }: RestartLimits): number {
  return recent.filter((at) => at > now - window).length
}

/** Returns the delay before a retry; `undefined` if there are no retries. */
export function retryDelay(retries: number, { retry }: RestartLimits): number | undefined {
  return retry[Math.min(retries, retry.length - 1)]
}

/**
 * Limits the time until a restart or a retry, because the configuration may have changed since it was planned.
 * @param maxWait the longest time until a restart
 */
export function dueWithin(watch: RestartState, now: number, maxWait: number, limits: RestartLimits): RestartState {
  const { phase, dueAt, retries } = watch
  const latest = now + (phase === 'given_up' ? (retryDelay(retries, limits) ?? 0) : maxWait)
  return dueAt !== null && dueAt > latest ? { ...watch, dueAt: latest } : watch
}

/** Returns whether the planned restart is a scheduled one. Such a restart does not count against the limit. */
export const isScheduled = ({ phase, forced, why }: RestartState) => phase === 'waiting' && forced && why === 'schedule'

export const idle = (watch: RestartState): RestartState =>
  watch.phase === 'idle' && !watch.forced
    ? watch
    : { ...watch, phase: 'idle', forced: false, dueAt: null, sentAt: null }

/** Resets the count of restarts. An app that was given up is watched again. */
export function afresh(watch: RestartState): RestartState {
  const { recent, versions, phase, sentAt } = watch
  if (phase === 'given_up') {
    const next = sentAt === null ? 'idle' : 'restarting'
    return { ...watch, phase: next, dueAt: null, retries: 0, spared: 0, recent: [], versions: [] }
  }
  const isFresh = recent.length + versions.length + watch.spared === 0
  return isFresh ? watch : { ...watch, spared: 0, recent: [], versions: [] }
}

/** Resets the count of restarts if the app has not had this version since the last reset. */
export function updated(watch: RestartState, from: string, to: string): RestartState {
  const versions = watch.versions.includes(from) ? watch.versions : [...watch.versions, from]
  if (versions.includes(to) || versions.length >= MAX_TIMES) return { ...watch, versions }
  return { ...afresh(watch), versions: [...versions, to] }
}

export function crashed(watch: RestartState, crash: Crash): RestartState {
  const phase = watch.phase === 'restarting' || watch.forced ? 'idle' : watch.phase
  const { reason: why } = crash
  return { ...watch, phase, forced: false, sentAt: null, down: true, upSince: null, lastCrash: crash, why }
}

/** Records that the app is running or starting. A restart is in progress until the app is running. */
export function up(watch: RestartState, running: boolean, now: number): RestartState {
  if (watch.sentAt !== null && !running) return watch.upSince === null ? watch : { ...watch, upSince: null }
  const waits = watch.forced && watch.phase === 'waiting'
  const calm = waits || watch.phase === 'given_up' ? watch : idle(watch)
  const upSince = running ? (watch.upSince ?? now) : null
  const isSame = calm === watch && upSince === watch.upSince && watch.sentAt === null && !watch.isSpared
  return isSame && !watch.down ? watch : { ...calm, down: false, upSince, sentAt: null, isSpared: false }
}

/** Records that the app was stopped on purpose, so it is not restarted. */
export function stopped(watch: RestartState): RestartState {
  if (watch.sentAt !== null) return watch.upSince === null ? watch : { ...watch, upSince: null }
  const calm = watch.phase === 'given_up' ? { ...watch, dueAt: null } : idle(watch)
  return { ...calm, down: false, upSince: null, isSpared: false }
}

/** Like `stopped`, but ends a restart in progress, because a restart only stops an app, and does not disable it. */
export const disabled = (watch: RestartState): RestartState => stopped({ ...watch, sentAt: null })

/** Plans a restart. @param forced whether to restart the app even though it is running */
export function planned(watch: RestartState, why: Reason, dueAt: number, forced = false): RestartState {
  return { ...watch, phase: 'waiting', why, forced, dueAt }
}

export function postponed(watch: RestartState, until: number): RestartState {
  return watch.dueAt !== null && watch.dueAt >= until ? watch : { ...watch, dueAt: until }
}

export function givenUp(watch: RestartState): RestartState {
  return { ...watch, phase: 'given_up', forced: false, dueAt: null, sentAt: null }
}

export function restarting(watch: RestartState, now: number): RestartState {
  const isRetry = watch.phase === 'given_up'
  const counts = !watch.isSpared && !isScheduled(watch)
  const recent = counts ? [...watch.recent, now].slice(-MAX_TIMES) : watch.recent
  const { restarts, retries } = watch
  return {
    ...watch,
    phase: isRetry ? 'given_up' : 'restarting',
    dueAt: null,
    sentAt: now,
    restarts: restarts + 1,
    retries: isRetry ? retries + 1 : 0,
    isSpared: false,
    spared: watch.spared + Number(watch.isSpared),
    recent,
  }
}

/** Removes the record of the last restart, because the hub did not carry out the restart. */
export function withdrawn(watch: RestartState, sentAt: number): RestartState {
  const { phase, recent } = watch
  const ended = phase === 'given_up' ? { ...watch, sentAt: null } : idle(watch)
  // A command may have cleared the count since the restart.
  const restarts = Math.max(0, watch.restarts - 1)
  return { ...ended, restarts, recent: recent.filter((at) => at !== sentAt) }
}

/** Returns when the app's earlier crashes and restarts stop counting; `null` if the app is not running. */
export function calmAt({ upSince, recent }: RestartState): number | null {
  // `upSince` may be before the latest restart, because lists and events do not always show that the app stopped.
  return upSince === null ? null : Math.max(upSince, recent.at(-1) ?? upSince) + CALM_MS
}

export function isCalm(watch: RestartState, now: number): boolean {
  const at = calmAt(watch)
  return at !== null && at <= now
}

/** Restores a scheduled restart that was waiting. Such an app is running, and not down. */
export function scheduledAgain(watch: RestartState, now: number): RestartState {
  const up = { ...watch, down: false }
  const { dueAt } = watch
  return dueAt === null || now - dueAt > MAX_LATE_MS ? idle(up) : planned(up, 'schedule', dueAt, true)
}

export type SavedState = Pick<GoneApp, 'guard' | 'history' | 'memory'>

/** Restores the state of an earlier run. Saved times are wall-clock times, which are `elapsed` time plus `offset`. */
export function restored({ guard: state, history, memory }: SavedState, now: number, offset: number): RestartState {
  const switched = memory?.enabled ?? null
  if (state === null) return { ...UNTOUCHED, switched }
  const at = (time: string) => Date.parse(time) - offset
  const { times, versions } = sinceCalm(sinceReset(history, memory?.reset_after), CALM_MS)
  // For restarts that are missing from the history, assume the time of the newest listed restart.
  const lost = Math.min(MAX_TIMES, state.restarts_in_window) - times.length
  const listed = times.map((time) => Math.min(time - offset, now))
  const recent = lost > 0 ? [...listed, ...Array<number>(lost).fill(listed.at(-1) ?? now)] : listed
  const sent = history.find(isOwnRestart)
  const snoozedUntil = state.snoozed_until === null ? null : at(state.snoozed_until)
  const dueAt = state.next_restart_at === null ? now : at(state.next_restart_at)
  const { state: last } = state
  const isGivenUp = last === 'given_up' || state.retry_at !== null
  const phase = isGivenUp ? 'given_up' : last === 'waiting' || last === 'restarting' ? last : 'idle'
  return {
    ...UNTOUCHED,
    switched,
    phase,
    why: state.last_crash?.reason ?? 'unknown',
    // An app that was given up and is not retried was stopped on purpose, or is running.
    down: phase === 'given_up' ? state.retry_at !== null : phase !== 'idle',
    dueAt: phase === 'waiting' ? dueAt : state.retry_at === null ? null : at(state.retry_at),
    retries: memory?.retries ?? 0,
    sentAt: phase === 'restarting' ? Math.min(now, sent === undefined ? now : at(sent.at)) : null,
    restarts: state.restarts,
    recent: recent.toSorted((a, b) => a - b).slice(-MAX_TIMES),
    versions,
    snoozedUntil,
    lastCrash: state.last_crash,
  }
}
