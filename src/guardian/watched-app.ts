/** The guardian's data about one app, and the facts that it publishes about the app. */

import { crashReasonOf, headOf, isCrashed } from '../contract/classify.ts'
import type { GuardMemory, GuardPayload, HistoryEntry, Offer, Reason } from '../contract/guard.ts'
import type { GuardFacts } from '../contract/publications.ts'
import type { App } from '../hub/app.ts'
import { BAD_WITHIN_MS, isFallen } from './decisions.ts'
import type { History } from './history.ts'
import { type Probed, UNPROBED } from './probes.ts'
import * as watch from './restart-state.ts'
import { type Memory, noMemory } from './trend.ts'
import { type Context, emit, stormUntil, type Turn } from './turn.ts'

export const DAY_SECONDS = 24 * 3600
/** The published age of an update grows in steps of this size. */
const STEP_SECONDS = 15 * 60
/** Minimum time before a failed update is tried again, in a later window. */
const RETRY_MS = 20 * 3_600_000

/** The guardian mutates this object when it decides. Times are in `elapsed` milliseconds unless stated otherwise. */
export class WatchedApp {
  readonly id: string
  app: App
  watch: watch.RestartState = watch.UNTOUCHED
  history: History = []
  /** The time of the newest event in the history before the last reset of the restart count. */
  resetAfter: string | null = null
  updated: (Omit<NonNullable<GuardMemory['updated']>, 'at'> & { readonly at: number }) | null = null
  offered: GuardMemory['offered'] = null
  /** When the app was last seen; `undefined` until the app is seen again after an absence of the app or its hub. */
  seenAt: number | undefined
  facts: GuardFacts | undefined
  /** The published facts as text, and the values from which they were rendered. */
  text = ''
  basis: readonly unknown[] = []
  memory: Memory
  /** The trend of the app's memory, in bytes per hour. */
  trend: number | null = null
  rising = false
  risingReportedAt = Number.NEGATIVE_INFINITY
  probed: Probed = UNPROBED
  changedAt: number
  /** When too many of the app's devices became unavailable, and how long reads have confirmed this. */
  away: { readonly since: number; readonly ms: number } | undefined
  /** Whether the app stopped without a sign of a new crash. */
  isCleanlyStopped = false
  /** When the restart after the hub's start is due. */
  bootDue: number | undefined
  isRequestPending = false
  /** Reason for the crashes after a bad update. */
  bad: Reason | null = null
  /** Whether the app is known to have stopped or started since its restart began. */
  hasStopped = false
  /** `false` while waiting for the hub's answer to the read before a restart, or to the restart itself. */
  answered = true
  /** Number of consecutive lists in which the app is running, since the hub accepted its restart. */
  listsUp = 0
  /** Number of failed reads before a restart, since the last successful read. */
  failedReads = 0
  /** The time to which a restart was last postponed. */
  postponedTo: number | undefined
  /** The time to which quiet hours have postponed a restart. */
  quietDue: number | undefined
  aloneUntil = 0
  /** Number of installs in progress, and who requested them. */
  installs = 0
  installedBy: string | null = null
  /** When an update last failed; `null` if no update has failed in the last `RETRY_MS`. */
  updateFailedAt: number | null = null
  /** Whether the warning that the app's update cannot be held has been logged. */
  isUnholdableLogged = false

  constructor(app: App, now: number) {
    this.id = app.id
    this.app = app
    this.memory = noMemory(app.id)
    this.changedAt = now
  }
}

export function isOn({ patterns }: Context, { id, watch }: WatchedApp): boolean {
  return watch.switched ?? patterns.watches(id)
}

/**
 * Returns whether a restart is in progress. The restart ends with the second list in which the app is running, because
 * the first such list may predate the restart.
 */
export function isRestarting({ answered, watch, listsUp }: WatchedApp): boolean {
  return !answered || (watch.sentAt !== null && listsUp < 2)
}

export function isDue({ now }: Context, { watch: { phase, dueAt, sentAt } }: WatchedApp): boolean {
  return (phase === 'waiting' || phase === 'given_up') && sentAt === null && dueAt !== null && dueAt <= now
}

/** Returns the next time, later than `after`, at which an action is due without another input. */
export function dueAfter({ config: { guard } }: Context, watched: WatchedApp, after: number): number {
  const { updated, bootDue } = watched
  const { phase, dueAt, sentAt, recent, snoozedUntil, spared } = watched.watch
  const isIdle = phase === 'idle' && recent.length + spared === 0 && snoozedUntil === null
  if (isIdle && updated === null && bootDue === undefined) return Number.POSITIVE_INFINITY
  const times = recent.map((at) => at + guard.window)
  if (dueAt !== null) times.push(dueAt)
  if (sentAt !== null) times.push(sentAt + watch.START_MS)
  if (snoozedUntil !== null) times.push(snoozedUntil)
  const calmAt = watch.calmAt(watched.watch)
  if (calmAt !== null && (recent.length + spared > 0 || phase === 'given_up')) times.push(calmAt)
  if (updated !== null) times.push(updated.at + BAD_WITHIN_MS + 1)
  if (bootDue !== undefined) times.push(bootDue)
  return Math.min(...times.filter((at) => at > after))
}

/** Applies changes that depend only on time, and plans the next restart. */
export function settle(turn: Turn, watched: WatchedApp): void {
  const { now } = turn
  if (watch.isCalm(watched.watch, now)) countAfresh(watched)
  const { sentAt, snoozedUntil } = watched.watch
  if (sentAt !== null && now - sentAt >= watch.START_MS) endRestart(turn, watched)
  const { quietDue } = watched
  // If the clock jumps, quiet hours may end early.
  if (quietDue !== undefined && turn.quietUntil() === undefined) {
    if (watched.watch.dueAt === quietDue) watched.watch = { ...watched.watch, dueAt: Math.min(quietDue, now) }
    watched.quietDue = undefined
  }
  if (snoozedUntil !== null && snoozedUntil <= now) watched.watch = { ...watched.watch, snoozedUntil: null }
  if (watched.updated !== null && now - watched.updated.at > BAD_WITHIN_MS) watched.updated = null
  if (watched.updateFailedAt !== null && now - watched.updateFailedAt >= RETRY_MS) watched.updateFailedAt = null
  if (watched.bootDue !== undefined && watched.bootDue <= now) restartAfterBoot(turn, watched)
  if (watched.watch.phase === 'given_up') planRetry(turn, watched)
  else plan(turn, watched)
  publish(turn, watched)
}

/** Resets the count of restarts, and marks the history, so that a later run does not count the older events again. */
export function countAfresh(watched: WatchedApp, state = watched.watch): void {
  watched.watch = watch.afresh(state)
  if (watched.watch !== state) watched.resetAfter = watched.history[0]?.at ?? null
}

function plan(turn: Turn, watched: WatchedApp): void {
  const { hub, now, decisions, config } = turn
  const { phase, snoozedUntil, lastCrash, recent } = watched.watch
  if (phase !== 'idle' || !needsRestart(turn, watched) || snoozedUntil !== null || watched.installs > 0) return
  const why = lastCrash?.reason ?? crashReasonOf(watched.app)
  if (decisions.hasUsedUp(watched.watch, now, config.guard)) {
    watched.watch = { ...watched.watch, why }
    giveUp(turn, watched, `${config.guard.max_restarts} restarts did not help.`)
  } else {
    const dueAt = now + decisions.delayAfter(recent.length, config.guard)
    const calmAt = stormUntil(hub.storm, config.guard.storm.within) ?? 0
    watched.watch = watch.planned(watched.watch, why, Math.max(dueAt, calmAt))
  }
}

function needsRestart(context: Context, watched: WatchedApp): boolean {
  const { app, isCleanlyStopped } = watched
  return isOn(context, watched) && isFallen(watched.watch, app) && app.enabled !== false && !isCleanlyStopped
}

function planRetry(turn: Turn, watched: WatchedApp): void {
  const { now, decisions, config } = turn
  const { dueAt, retries } = watched.watch
  const delay = decisions.retryDelay(retries, config.guard)
  const isNeeded = needsRestart(turn, watched)
  const isPastDue = delay === undefined || (!isNeeded && dueAt !== null && dueAt <= now)
  const next = isPastDue ? null : isNeeded ? (dueAt ?? now + delay) : dueAt
  if (next !== dueAt) watched.watch = { ...watched.watch, dueAt: next }
}

/**
 * Waits until the app has started. If the app is not running, other rules determine whether to restart it. A reload may
 * have removed the restart from the configuration.
 */
function restartAfterBoot(turn: Turn, watched: WatchedApp): void {
  const { app, watch: state } = watched
  if (app.state === 'starting') return
  watched.bootDue = undefined
  const isIdle = state.phase === 'idle' && state.snoozedUntil === null && app.state === 'running'
  if (!isIdle || !isOn(turn, watched) || app.enabled === false || !turn.patterns.afterBoot(app.id)) return
  watched.watch = watch.planned(state, 'schedule', turn.now, true)
}

export function giveUp(turn: Turn, watched: WatchedApp, message: string): void {
  // Report this event only once, regardless of the number of retries.
  if (watched.watch.phase === 'given_up') return
  watched.watch = watch.givenUp(watched.watch)
  planRetry(turn, watched)
  const { why } = watched.watch
  note(turn, watched, 'gave_up', why, 'guard', message)
  emit(turn, watched.id, 'gave_up', why, { message })
}

/** Called when a restart has timed out or the hub has refused it. */
export function endRestart({ now }: Turn, watched: WatchedApp): void {
  const phase = watched.watch.phase === 'given_up' ? 'given_up' : 'idle'
  const rested = unlessStopped(watched, { ...watched.watch, phase, forced: false, sentAt: null })
  // Some hubs send no update for an app that is running again.
  watched.watch = watched.app.state === 'running' ? watch.up(rested, true, now) : rested
}

/** Leaves the app stopped if a person stopped it after its restart began. */
export function unlessStopped({ hasStopped, app }: WatchedApp, rested: watch.RestartState): watch.RestartState {
  return hasStopped && isStopped(app) && !isCrashed(app) ? watch.stopped(rested) : rested
}

export const isStopped = ({ state }: App) => state === 'stopped' || state === 'stopping'

export function note(
  { wall, config }: Context,
  watched: WatchedApp,
  what: HistoryEntry['what'],
  reason: Reason | null,
  by: string | null,
  message: string | null,
): HistoryEntry {
  const at = new Date(wall).toISOString()
  const entry = { at, what, reason, version: watched.app.version, by, message: headOf(message) }
  watched.history = [entry, ...watched.history].slice(0, config.guard.history)
  return entry
}

function publish(turn: Turn, watched: WatchedApp): void {
  const { now, offset, config } = turn
  const isMarked = watched.resetAfter !== null && watched.history.some(({ at }) => at === watched.resetAfter)
  // If the history no longer contains this event, all events in the history are newer than the reset.
  if (!isMarked) watched.resetAfter = null
  const { trend, history, offered, updated, bad, rising, resetAfter, updateFailedAt } = watched
  const { found, noticed } = watched.probed
  const on = isOn(turn, watched)
  const count = watch.countRecent(watched.watch.recent, now, config.guard)
  const { switched, retries, down, phase } = watched.watch
  const isUnseen = down && phase === 'idle' && !turn.decisions.hasCrashed(undefined, watched.app)
  const kept = [history, offered, updated, resetAfter, updateFailedAt, offset, isUnseen]
  const basis = [watched.watch, on, trend, bad, rising, found, noticed, count, ...kept]
  if (basis.every((value, i) => value === watched.basis[i])) return
  // Set this even if no published fact changes: a restart must end even if watching was turned off meanwhile.
  if (watched.watch !== watched.basis[0]) turn.hasMoved = true
  watched.basis = basis
  const state = payloadOf(turn, watched, on, count)
  const isLasting = [offered, updated, resetAfter, updateFailedAt, switched].some((one) => one !== null) || isUnseen
  const memory = isLasting || retries > 0 || watch.isScheduled(watched.watch) ? memoryOf(turn, watched, isUnseen) : null
  const text = JSON.stringify([state, memory])
  if (text === watched.text && watched.facts?.history === history) return
  watched.text = text
  watched.facts = { state, history, memory }
  turn.facts.add(watched.id)
  turn.hasMoved = true
}

/** @param isUnseen whether the app is down because of a crash that the hub's data about the app does not show */
function memoryOf({ config, offset }: Context, watched: WatchedApp, isUnseen: boolean): GuardMemory {
  const { offered, updated, resetAfter, updateFailedAt } = watched
  const { switched: enabled, retries } = watched.watch
  const iso = (at: number) => new Date(at + offset).toISOString()
  return {
    enabled,
    offered: shownOffer(offered, config.updates.hold_days),
    updated: updated && { ...updated, at: iso(updated.at) },
    ...(retries > 0 && { retries }),
    ...(resetAfter !== null && { reset_after: resetAfter }),
    ...(updateFailedAt !== null && { update_failed_at: iso(updateFailedAt) }),
    ...(isUnseen && { down: true as const }),
    ...(watch.isScheduled(watched.watch) && { scheduled: true as const }),
  }
}

/** Returns the offer to publish. To publish less often, its age grows in large steps, and only up to the hold time. */
function shownOffer(offer: Offer | null, holdDays: number): Offer | null {
  if (offer === null) return null
  const steps = Math.floor(Math.min(offer.seen_seconds, holdDays * DAY_SECONDS) / STEP_SECONDS)
  return { ...offer, seen_seconds: steps * STEP_SECONDS }
}

function payloadOf(
  { now, offset }: Context,
  watched: WatchedApp,
  on: boolean,
  restarts_in_window: number,
): GuardPayload {
  const { phase, restarts, dueAt, snoozedUntil, lastCrash: last_crash } = watched.watch
  const iso = (at: number | null) => (at === null ? null : new Date(Math.round(at + offset)).toISOString())
  const snoozed = snoozedUntil !== null && snoozedUntil > now
  return {
    state: !on ? 'off' : snoozed ? 'snoozed' : phase === 'idle' ? 'watching' : phase,
    restarts,
    restarts_in_window,
    next_restart_at: on && !snoozed && phase === 'waiting' ? iso(dueAt) : null,
    retry_at: on && phase === 'given_up' ? iso(dueAt) : null,
    snoozed_until: snoozed ? iso(snoozedUntil) : null,
    last_crash,
    memory_trend_bytes_per_hour: watched.trend,
    attention: attentionOf(watched, on),
  }
}

function attentionOf({ watch: { phase, why }, bad, rising, probed }: WatchedApp, on: boolean): Reason[] {
  const reasons = [
    on && phase === 'given_up' ? why : undefined,
    bad ?? undefined,
    rising ? ('memory_limit' as const) : undefined,
    probed.found,
    probed.noticed,
  ]
  return [...new Set(reasons.filter((reason) => reason !== undefined))]
}
