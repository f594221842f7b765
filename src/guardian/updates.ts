/** Updates in the update window: selects the next app, one at a time across all hubs, and checks each result. */
import { nextAfter } from '../base/cron.ts'
import type { Outcome } from '../contract/answer.ts'
import type { Offer } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import { START_MS } from './restart-state.ts'
import type { GuardConfig } from './settings.ts'
import { type Context, emit, type Turn, type Update, versions } from './turn.ts'
import { DAY_SECONDS, settle, type WatchedApp } from './watched-app.ts'

/** Time for a hub to report the new version after it has accepted the install. */
const VERIFY_MS = 10 * 60_000
/**
 * Time to wait after a failed install of a named version, because the hub may have installed a different version, or
 * after the hub has stopped listing the app.
 */
const OTHER_MS = 60_000

/** Returns whether the update window is open. @param now epoch milliseconds */
export function isOpen({ updates: { window, time_zone } }: GuardConfig, now: number): boolean {
  if (window.start === null) return false
  const opened = nextAfter(window.start, time_zone ?? undefined, now - window.length)
  return opened !== undefined && opened <= now
}

/**
 * Updates an offer.
 * @param gapMs time since the app was last seen, which is added up per version
 * @param at the current time in epoch milliseconds
 */
export function offerOf(app: App, before: Offer | null, gapMs: number, at: number): Offer | null {
  const { update_available, latest_version: version } = app
  if (update_available !== true) return null
  if (before === null || before.version !== version)
    return { version, since: new Date(at).toISOString(), seen_seconds: 0 }
  return { ...before, seen_seconds: before.seen_seconds + gapMs / 1000 }
}

export function startUpdate(turn: Turn): void {
  const { hub } = turn
  const { policy, hold_days, backup } = turn.config.updates
  if (policy === 'manual' || hub.restarting !== null || hub.update !== null || !hub.online) return
  const acceptsVersion = !hub.ignoresVersion && hub.port.acceptsVersion()
  for (const watched of hub.apps.values()) {
    const verdict = verdictOn(turn, watched, acceptsVersion)
    if (verdict === 'unheld') logUnholdable(turn, watched)
    if (verdict !== 'due' || !isFree(turn, watched)) continue
    if (!turn.mayUpdate()) return
    const { version: from, latest_version: to } = watched.app
    // Name the version. Otherwise, the hub could install a newer version that was not held, or a larger step.
    const isNamed = hold_days > 0 || (acceptsVersion && turn.patterns.severity(watched.id) !== undefined)
    const named = isNamed ? to : null
    const update = { watched, from, to, named, aloneUntil: turn.now + START_MS, deadline: null, refusal: null }
    hub.update = update
    if (backup) turn.effects.push({ kind: 'backup', update })
    else install(turn, update)
    return
  }
}

/** `unheld` means that the app is skipped, because `hold_days` needs a hub that reports and accepts versions. */
function verdictOn(context: Context, watched: WatchedApp, acceptsVersion: boolean): 'due' | 'later' | 'unheld' {
  const { app, offered, updateFailedAt } = watched
  const { hold_days } = context.config.updates
  if (app.update_available !== true || app.enabled === false || offered === null) return 'later'
  if (isExcluded(context, watched) || updateFailedAt !== null) return 'later'
  if (!context.decisions.mayInstall(app, context.patterns.severity(app.id))) return 'later'
  if (hold_days > 0 && (offered.version === null || !acceptsVersion)) return 'unheld'
  return offered.version === app.latest_version && offered.seen_seconds >= hold_days * DAY_SECONDS ? 'due' : 'later'
}

function isExcluded({ patterns }: Context, { id, watch }: WatchedApp): boolean {
  if (watch.snoozedUntil !== null) return true
  return watch.switched === null ? patterns.ignores(id) : !watch.switched
}

function isFree({ now, quietUntil }: Context, { installs, aloneUntil, watch: { phase } }: WatchedApp): boolean {
  const isIdle = installs === 0 && aloneUntil <= now && (phase === 'idle' || phase === 'given_up')
  return isIdle && quietUntil() === undefined
}

function logUnholdable(turn: Turn, watched: WatchedApp): void {
  if (watched.isUnholdableLogged) return
  watched.isUnholdableLogged = true
  const why = 'the hub does not report which version it would install, or does not accept a version'
  const text = `not updated: updates.hold_days cannot hold the update, because ${why}; install it by hand`
  turn.effects.push({ kind: 'log', level: 'warn', details: { app: watched.id }, text })
}

function install(turn: Turn, update: Update): void {
  const { watched, named } = update
  const payload = named === null ? {} : { version: named }
  turn.effects.push({ kind: 'order', order: { watched, command: 'install', payload, update } })
}

/** Continues an update after the backup. The user may have decided against the update during the backup. */
export function backedUp(turn: Turn, update: Update, failure: string | undefined): void {
  if (failure !== undefined) end(turn, update, `No backup, so no update: ${failure}`)
  else if (!isStillWanted(turn, update)) end(turn, update, 'The update was no longer wanted after the backup.')
  else install(turn, update)
}

export function isStillWanted(context: Context, { watched }: Update): boolean {
  return context.config.updates.policy !== 'manual' && watched.app.enabled !== false && !isExcluded(context, watched)
}

/** Records the answer to an install. The versions that the hub reports later show whether the install succeeded. */
export function installAnswered({ now }: Turn, update: Update, outcome: Outcome): void {
  const code = outcome.ok ? 'outcome_unknown' : outcome.error.code
  if (code === 'outcome_unknown') update.deadline = now + VERIFY_MS
  else update.deadline = now + (code === 'hub_failed' && update.named !== null ? OTHER_MS : 0)
  update.refusal = outcome.ok || code === 'outcome_unknown' ? null : outcome.error.message
}

export function followUpdate(turn: Turn, update: Update): void {
  if (update.deadline === null) return
  const app = turn.hub.apps.get(update.watched.id)?.app
  // Do not end immediately, because the hub may omit an app for a moment while it updates the app.
  if (app === undefined) update.deadline = Math.min(update.deadline, turn.now + OTHER_MS)
  const version = app?.version ?? null
  if (version !== null && version !== update.from) end(turn, update, undefined)
  else if (turn.now >= update.deadline) {
    const still = `The hub accepted the install but still reports version ${version ?? 'unknown'}.`
    end(turn, update, update.refusal ?? (app === undefined ? 'The app is no longer listed.' : still))
  }
}

function end(turn: Turn, { watched: begun, from, to, named }: Update, failure: string | undefined): void {
  const { hub } = turn
  const watched = hub.apps.get(begun.id) ?? begun
  const { id, app } = watched
  const { version } = app
  hub.update = null
  if (failure !== undefined) {
    watched.updateFailedAt = turn.now
    settle(turn, watched)
    emit(turn, id, 'update_failed', 'schedule', { message: failure, ...versions(from, to) })
    return
  }
  emit(turn, id, 'updated_by_guard', 'schedule', versions(from, version))
  if (named === null || version === named) return
  hub.ignoresVersion = true
  const details = { app: id, wanted: named, version }
  const text = 'the hub installed a version other than the one held'
  turn.effects.push({ kind: 'log', level: 'warn', details, text })
}
