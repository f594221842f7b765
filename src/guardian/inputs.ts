/** The guardian's reactions to events of one app. */

import type { GuardRun, Links } from '../bridge/guarding.ts'
import { crashReasonOf, headOf, isCrashed, isUp } from '../contract/classify.ts'
import type { GuardControl } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import { SETTLING_MS } from './decisions.ts'
import { isOwnRestart, lasting, updatedFrom } from './history.ts'
import { probe, UNPROBED } from './probes.ts'
import * as watch from './restart-state.ts'
import { countCrash, countsForStorm } from './storm.ts'
import { levelsAt, type MemorySample, noMemory, shownTrend, trendOf } from './trend.ts'
import { BY, type Context, emit, mayAct, type Turn, versions } from './turn.ts'
import { offerOf } from './updates.ts'
import { countAfresh, isOn, isStopped, note, settle, type WatchedApp } from './watched-app.ts'

/** For this long after a write command, the guardian does not act on the app. */
export const ALONE_MS = 60_000
/** Minimum time between two reports of growing memory for the same app. */
const RISING_AGAIN_MS = 24 * 3_600_000

/**
 * Starts to watch an app, and restores its saved state, if there is one.
 * @param isReload whether a reload has turned the guardian on; an earlier crash of a running app is then ignored
 */
export function start(turn: Turn, watched: WatchedApp, saved: watch.SavedState | undefined, isReload = false): void {
  const { now } = turn
  const { app } = watched
  watched.seenAt = undefined
  if (saved !== undefined) restore(turn, watched, saved)
  if (isNewCrash(turn, watched) && !(isReload && isUp(app))) crashed(turn, watched)
  else if (app.enabled === false) watched.watch = watch.disabled(watched.watch)
  else if (isUp(app) && !(isCrashed(app) && isDown(watched))) {
    watched.watch = watch.up(watched.watch, app.state === 'running', now)
  } else if (isStillFallen(turn, watched, saved)) watched.watch = { ...watched.watch, down: true }
  else if (!isCrashed(app) && (isIdle(watched) || wasStopped(watched))) {
    watched.watch = watch.stopped(watched.watch)
  }
  awaitBoot(turn, watched, false)
  settle(turn, watched)
}

/** Whether no restart is planned, except one of a running app. */
const isIdle = ({ watch: { phase, forced } }: WatchedApp) => phase === 'idle' || forced

/** Whether a person stopped an app while no bridge was active, after the guardian had given up on the app. */
function wasStopped({ app, watch: { phase, lastCrash } }: WatchedApp): boolean {
  return phase === 'given_up' && isStopped(app) && headOf(app.crash_message) !== lastCrash?.message
}

/** Plans the configured restart after a start of the hub. @param isNow whether the hub has just started */
export function awaitBoot({ hub, now, patterns }: Turn, watched: WatchedApp, isNow: boolean): void {
  const after = patterns.afterBoot(watched.id)
  if (hub.boot === undefined || after === undefined) return
  const due = hub.boot.at + after
  const { phase, why } = watched.watch
  // Cancel a scheduled restart that is still waiting, because the restart after the hub's start replaces it.
  if (!isNow && due <= now) return
  if (phase === 'waiting' && why === 'schedule') watched.watch = watch.idle(watched.watch)
  watched.bootDue = due
}

/** Limits the time until the app's restart to the longest time that the current configuration can cause. */
export function limitWait(turn: Turn, watched: WatchedApp): void {
  const { hub, now, decisions, config } = turn
  const { guard } = config
  const until = Math.max(turn.quietUntil() ?? now, decisions.budgetUntil(hub.restarts, now, guard) ?? now)
  const maxWait = Math.max(until - now, guard.backoff_max, guard.storm.within, SETTLING_MS)
  watched.watch = watch.dueWithin(watched.watch, now, maxWait, guard)
}

function restore(turn: Turn, watched: WatchedApp, saved: watch.SavedState): void {
  const { hub, now, offset, config } = turn
  const { history, memory } = saved
  // Limit saved times to the current time, because the clock of an earlier run may have been ahead.
  const pastTime = (time: string) => Math.min(Date.parse(time) - offset, now)
  watched.watch = watch.restored(saved, now, offset)
  const isScheduled = memory?.scheduled === true && watched.watch.phase === 'waiting'
  if (isScheduled) watched.watch = watch.scheduledAgain(watched.watch, now)
  watched.history = history.slice(0, config.guard.history)
  const times = history.filter(isOwnRestart).map(({ at }) => pastTime(at))
  const { recent } = watched.watch
  hub.restarts = [...hub.restarts, ...(times.length > recent.length ? times : recent)].sort((a, b) => a - b)
  limitWait(turn, watched)
  watched.resetAfter = memory?.reset_after ?? null
  watched.offered = memory?.offered ?? null
  const updated = memory?.updated ?? null
  watched.updated = updated && { ...updated, at: pastTime(updated.at) }
  if (memory?.update_failed_at !== undefined) watched.updateFailedAt = pastTime(memory.update_failed_at)
  watched.bad = lasting(watched.history, 'bad_update', watched.app.version) ?? null
  const reported = history.find(({ what }) => what === 'memory_rising')
  if (reported !== undefined) watched.risingReportedAt = pastTime(reported.at)
}

/** Whether the app is still down because of a crash that an earlier run recorded without restarting the app. */
function isStillFallen({ decisions }: Context, { app, watch }: WatchedApp, saved?: watch.SavedState): boolean {
  return watch.phase === 'idle' && (saved?.memory?.down === true || decisions.hasCrashed(undefined, app))
}

/** Whether an app that is new to this process has crashed since an earlier run last recorded it. */
function isNewCrash({ decisions }: Context, watched: WatchedApp): boolean {
  const { app, watch, history } = watched
  if (!decisions.hasCrashed(undefined, app) || !isIdle(watched)) return false
  // After a crash, the guardian may also record that it gives up, or that the latest update is bad.
  const newest = history.find(({ what }) => what !== 'gave_up' && what !== 'bad_update')
  const earlier = isUp(app) ? watch.lastCrash : newest?.what === 'crash' ? newest : undefined
  return earlier?.message !== headOf(app.crash_message) || earlier.version !== app.version
}

/** Whether the app is down, and the guardian has neither restarted it nor given up on it. */
const isDown = ({ watch: { down, phase } }: WatchedApp): boolean => down && (phase === 'idle' || phase === 'waiting')

export function changed(turn: Turn, watched: WatchedApp, before: App, after: App): void {
  const { now, decisions } = turn
  watched.app = after
  watched.changedAt = now
  const wasDown = isDown(watched)
  // The timer that resets the count may be late, so check the time here as well.
  if (watch.isCalm(watched.watch, now)) countAfresh(watched)
  if (before.version !== after.version) versionChanged(turn, watched, before.version, after.version)
  seeOffer(turn, watched)
  if (before.state === 'running' && after.state !== 'running') {
    watched.memory = noMemory(watched.id, turn.now)
    watched.away = undefined
  }
  const hasCrashed = decisions.hasCrashed(before, after, wasDown)
  watched.isCleanlyStopped = !hasCrashed && !wasDown && isCleanStop(watched, before)
  if (hasCrashed) crashed(turn, watched, countsForStorm(turn, watched))
  else if (after.enabled === false) watched.watch = watch.disabled(watched.watch)
  else if (isUp(after)) {
    if (after.state !== 'running') watched.hasStopped = true
    const isStillDown = wasDown && isCrashed(after) && after.state === before.state
    const { forced, phase } = watched.watch
    if (!isStillDown && (!forced || watched.hasStopped || phase !== 'restarting')) {
      watched.watch = watch.up(watched.watch, after.state === 'running', now)
    }
  } else if (!isCrashed(after) && isStopped(after)) {
    watched.hasStopped = true
    // If the crash flag disappears and the app has not started, a person has stopped the app.
    if (!watched.watch.down || isCrashed(before)) watched.watch = watch.stopped(watched.watch)
  }
  settle(turn, watched)
}

/** Returns whether an app stopped without a new crash. Some hubs keep the crash flag when the app is running again. */
function isCleanStop({ app, isCleanlyStopped }: WatchedApp, before: App): boolean {
  return isStopped(app) && (isUp(before) || isCleanlyStopped)
}

/** @param counts whether the crash counts towards a storm */
function crashed(turn: Turn, watched: WatchedApp, counts = false): void {
  const { now, wall, decisions, config } = turn
  const { id, app } = watched
  const reason = crashReasonOf(app)
  const message = headOf(app.crash_message)
  const at = new Date(wall).toISOString()
  watched.watch = watch.crashed(watched.watch, { at, reason, message, version: app.version })
  watched.memory = noMemory(id)
  if (counts) countCrash(turn, id)
  note(turn, watched, 'crash', reason, null, message)
  if (watched.updated === null) return
  const crashes = watched.updated.crashes + 1
  watched.updated = { ...watched.updated, crashes }
  const { at: updatedAt, from, to } = watched.updated
  if (watched.bad !== null || !decisions.isBad(crashes, now - updatedAt)) return
  watched.bad = reason
  const text = `${crashes} crashes since the update from ${from ?? '?'} to ${to ?? '?'}`
  note(turn, watched, 'bad_update', reason, null, text)
  emit(turn, id, 'bad_update', reason, { message: text, ...versions(from, to) })
  if (!config.updates.off_when_bad || app.autoupdate === false || !mayAct(turn)) return
  turn.effects.push({ kind: 'order', order: { watched, command: 'update', payload: { autoupdate: false } } })
}

function versionChanged(turn: Turn, watched: WatchedApp, from: string | null, to: string | null): void {
  if (from === null || to === null) return
  watched.updated = { at: turn.now, from, to, crashes: 0 }
  watched.bad = null
  watched.offered = null
  watched.rising = false
  watched.memory = noMemory(watched.id, turn.now)
  watched.watch = watch.updated(watched.watch, from, to)
  note(turn, watched, 'update', null, watched.installedBy, updatedFrom(from))
  if (watched.installs === 0) watched.installedBy = null
}

/** Records which update is offered for the app, and for how long the offer has been seen. */
function seeOffer({ now, wall, config }: Context, watched: WatchedApp): void {
  const gap = now - (watched.seenAt ?? now)
  watched.seenAt = now
  const isWanted = config.updates.policy !== 'manual'
  watched.offered = isWanted ? offerOf(watched.app, watched.offered, gap, wall) : null
}

export function wasListed(turn: Turn, watched: WatchedApp, reportsUsage: boolean): void {
  const { now, patterns, hub } = turn
  const { memory_bytes, state } = watched.app
  const isRunning = state === 'running'
  watched.listsUp = watched.answered && isRunning ? watched.listsUp + 1 : 0
  if (isRunning && memory_bytes !== null) {
    const levels = levelsAt(watched.memory, now, (since) => hub.port.memory(watched.id, since))
    if (levels !== undefined) followMemory(turn, watched, levels, memory_bytes)
  }
  seeOffer(turn, watched)
  checkProbes(turn, watched, reportsUsage)
  const web = isRunning && isOn(turn, watched) ? patterns.webProbe(watched.id) : undefined
  // Send at most one request to an app at a time.
  if (web === undefined || watched.isRequestPending) return
  watched.isRequestPending = true
  turn.effects.push({ kind: 'request', watched, web })
}

/** Decides whether to restart a running app. @param reportsUsage see `ProbeInput` */
function checkProbes(turn: Turn, watched: WatchedApp, reportsUsage: boolean | undefined): void {
  const { now, config, patterns, decisions } = turn
  const { app, away, changedAt } = watched
  const isRunning = app.state === 'running'
  const { limits } = patterns
  const given = { limits, reads: config.guard.for_reads, reportsUsage, quietMs: now - changedAt, awayMs: away?.ms ?? 0 }
  const wasFound = watched.probed.found !== undefined
  const probed = isRunning ? probe(watched.probed, app, given) : UNPROBED
  // Apps that are not watched are not restarted, and need no attention.
  const isWatched = isRunning && app.enabled !== false && isOn(turn, watched)
  watched.probed = isWatched ? probed : { ...probed, found: undefined, noticed: undefined }
  const { found } = watched.probed
  const { phase, forced, recent } = watched.watch
  if (found !== undefined && phase === 'idle') {
    const dueAt = now + decisions.delayAfter(recent.length, config.guard)
    watched.watch = watch.planned(watched.watch, found, dueAt, true)
  } else if (wasFound && found === undefined && forced && phase === 'waiting') {
    watched.watch = watch.up({ ...watched.watch, forced: false }, true, now)
  }
  settle(turn, watched)
}

/** Call this after reading how many devices each app has, and how many of them are unavailable. */
export function linked(turn: Turn, links: ReadonlyMap<string, Links | null>): void {
  const { hub, now, patterns, decisions } = turn
  for (const [app, found] of links) {
    const watched = hub.apps.get(app)
    if (watched === undefined) continue
    const isAway = watched.app.state === 'running' && decisions.isUnavailable(patterns.unavailable(app)?.devices, found)
    if (!isAway && watched.away === undefined) continue
    const since = watched.away?.since ?? now
    watched.away = isAway ? { since, ms: now - since } : undefined
    if (turn.isActing) checkProbes(turn, watched, undefined)
  }
}

/** Records, for the next read, whether the app's web API responded as expected; `undefined` if inconclusive. */
export function wasRequested(watched: WatchedApp, isGood: boolean | undefined): void {
  watched.isRequestPending = false
  if (watched.app.state === 'running') watched.probed = { ...watched.probed, isAnswered: isGood }
}

function followMemory(turn: Turn, watched: WatchedApp, levels: readonly MemorySample[], bytes: number): void {
  const { now, decisions, patterns } = turn
  const trend = trendOf(levels)
  watched.trend = shownTrend(watched.trend, trend)
  const rising = decisions.isRising(levels, trend, patterns.memoryLimit(watched.id), watched.memory.peak)
  if (rising && !watched.rising && now - watched.risingReportedAt >= RISING_AGAIN_MS) {
    watched.risingReportedAt = now
    const message = `${mebibytes(bytes)} MiB, and ${mebibytes(trend ?? 0)} MiB more each hour`
    note(turn, watched, 'memory_rising', 'memory_limit', null, message)
    emit(turn, watched.id, 'memory_rising', 'memory_limit', { message })
  }
  watched.rising = rising || (watched.rising && (trend ?? 0) > 0)
}

const mebibytes = (bytes: number) => (bytes / 1_048_576).toFixed(1)

export function control(turn: Turn, app: string, { enabled, snooze, forget }: GuardControl): void {
  const watched = turn.hub.apps.get(app)
  if (watched === undefined) return
  if (forget) {
    watched.history = []
    watched.bad = null
    watched.updated = null
    watched.updateFailedAt = null
    watched.rising = false
    const { switched, snoozedUntil, upSince, down, forced, sentAt } = watched.watch
    const ongoing = sentAt === null ? {} : ({ phase: 'restarting', forced, sentAt } as const)
    watched.watch = { ...watch.UNTOUCHED, switched, snoozedUntil, upSince, down, ...ongoing }
  }
  if (enabled !== undefined) {
    const rested = watched.watch.phase === 'restarting' ? watched.watch : watch.idle(watched.watch)
    countAfresh(watched, rested)
    watched.watch = { ...watched.watch, switched: enabled, snoozedUntil: null }
    if (enabled) watched.bad = null
  }
  if (snooze !== undefined) {
    const rested = watched.watch.phase === 'waiting' ? watch.idle(watched.watch) : watched.watch
    watched.watch = { ...rested, snoozedUntil: turn.now + snooze }
  }
  settle(turn, watched)
}

/** Postpones actions on an app after any install, and after a client's write commands other than `guard`. */
export function commanded(turn: Turn, { about, command, phase, ok, by, starts }: GuardRun): void {
  const watched = turn.hub.apps.get(about ?? '')
  if (watched === undefined) return
  const isInstall = command.operation === 'installFromAppStore'
  if (isInstall) {
    // Count while the guardian does not act as well, because an install may end before or after the guardian acts.
    // For an app that the install adds, only the end of the install arrives here. The count must not fall below 0.
    watched.installs = Math.max(0, watched.installs + (phase === 'begun' ? 1 : -1))
    watched.installedBy = by === BY ? BY : 'command'
  } else if (by === BY || !command.write || command.needs === 'guard') return
  if (!turn.isActing) return
  if (!isInstall && ok && starts) countAfresh(watched)
  if (!isInstall || phase === 'ended') watched.aloneUntil = turn.now + ALONE_MS
  settle(turn, watched)
}
