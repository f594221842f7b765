/** Restarts apps, one at a time on each hub. */
import type { Outcome } from '../contract/answer.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { AFTER_STORM, RETRY } from './history.ts'
import { ALONE_MS } from './inputs.ts'
import * as watch from './restart-state.ts'
import { noMemory } from './trend.ts'
import { type Context, emit, mayAct, type Order, stormUntil, type Turn, type WatchedHub } from './turn.ts'
import { endRestart, giveUp, isDue, isOn, note, settle, unlessStopped, type WatchedApp } from './watched-app.ts'

const NOTHING_DONE: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited'])
const PERMANENT: ReadonlySet<ErrorCode> = new Set(['not_allowed', 'forbidden', 'unsupported', 'unauthorized'])
/** Maximum time between reading an app and carrying out its restart. */
const FRESH_MS = 5_000

/** Everything that may prevent a due restart. Times are in `elapsed` milliseconds. */
export type Situation = ReturnType<typeof situationOf>

function situationOf(context: Context, hub: WatchedHub, watched: WatchedApp) {
  return {
    watch: watched.watch,
    app: watched.app,
    on: isOn(context, watched),
    now: context.now,
    limits: context.config.guard,
    mayAct: mayAct(context),
    hubOnline: hub.online,
    hubBackAt: hub.backAt,
    installing: watched.installs > 0,
    aloneUntil: watched.aloneUntil,
    quietUntil: context.quietUntil(),
    hubBusy: hub.restarting !== null || isUpdating(hub, watched, context.now),
    stormUntil: stormUntil(hub.storm, context.config.guard.storm.within),
    budgetUntil: context.decisions.budgetUntil(hub.restarts, context.now, context.config.guard),
  }
}

/** Whether the guardian is updating this app, or began to update another app of the hub less than a minute ago. */
function isUpdating({ update }: WatchedHub, watched: WatchedApp, now: number): boolean {
  return update !== null && (update.watched === watched || update.aloneUntil > now)
}

/** Checks all due restarts of a hub, longest overdue first. */
export function tryRestarts(turn: Turn, due: WatchedApp[]): void {
  const { hub } = turn
  due.sort((a, b) => (a.watch.dueAt ?? 0) - (b.watch.dueAt ?? 0))
  for (const watched of due) {
    if (!mayRestart(turn, watched, situationOf(turn, hub, watched))) continue
    hub.restarting = watched
    watched.answered = false
    turn.effects.push({ kind: 'read', watched })
  }
}

/** Whether a due restart may run now. If not, it stays due, is postponed or cancelled, or the guardian gives up. */
function mayRestart(turn: Turn, watched: WatchedApp, situation: Situation): boolean {
  const found = turn.decisions.obstacle(situation)
  if (found === undefined || found === 'hold') return found === undefined
  if (found === 'cancel') watched.watch = watch.stopped(watched.watch)
  else if (found === 'give_up') giveUp(turn, watched, 'More restarts than the configuration allows.')
  else postpone(turn, watched, found)
  if (found === situation.budgetUntil) logBudget(turn)
  settle(turn, watched)
  return false
}

/** Logs once per window that apps must wait because the hub had too many restarts. */
function logBudget({ hub, now, config: { guard }, effects }: Turn): void {
  if (now < hub.loggedUntil) return
  hub.loggedUntil = now + guard.window
  const details = { restarts: guard.hub_max_restarts }
  const text = 'guardian: guard.hub_max_restarts is reached; other apps wait'
  effects.push({ kind: 'log', level: 'warn', details, text })
}

function postpone(context: Context, watched: WatchedApp, until: number): void {
  watched.watch = watch.postponed(watched.watch, until)
  watched.postponedTo = until
  watched.quietDue = context.quietUntil() === undefined ? undefined : until
}

/** Continues a restart after the app was read again, which is necessary because its data can be an hour old. */
export function wasRead(turn: Turn, watched: WatchedApp, isRead: boolean): void {
  const { hub } = turn
  const situation = { ...situationOf(turn, hub, watched), hubBusy: false }
  if (isRead && hub.restarting === watched && isDue(turn, watched) && mayRestart(turn, watched, situation))
    return void sendRestart(turn, watched)
  watched.answered = true
  watched.failedReads = isRead ? 0 : watched.failedReads + 1
  if (isRead || watched.watch.dueAt === null) return
  const failures = watched.watch.recent.length + watched.failedReads
  postpone(turn, watched, turn.now + turn.decisions.delayAfter(failures, turn.config.guard))
  settle(turn, watched)
}

function sendRestart(turn: Turn, watched: WatchedApp): void {
  const { hub, now, config } = turn
  const { why, phase, isSpared } = watched.watch
  const isRetry = phase === 'given_up'
  watched.watch = watch.restarting(watched.watch, now)
  hub.restarts = [...hub.restarts.filter((at) => at > now - config.guard.window), now]
  watched.hasStopped = false
  watched.listsUp = 0
  watched.failedReads = 0
  watched.away = undefined
  // Count the restart as a change, because not every hub reports that the app stops and starts.
  watched.changedAt = now
  const entry = note(turn, watched, 'restart', why, 'guard', isRetry ? RETRY : isSpared ? AFTER_STORM : null)
  settle(turn, watched)
  const event = isRetry ? 'retried' : 'restarted'
  const order = { watched, command: 'restart', payload: {}, why, entry, event, readAt: now } as const
  turn.effects.push({ kind: 'order', order })
}

type Restart = Extract<Order, { command: 'restart' }>

/** Called immediately before the restart is carried out. */
export function isWanted(context: Context, hub: WatchedHub, { watched, readAt }: Restart): boolean {
  const situation = situationOf(context, hub, watched)
  const sent = { ...watched.watch, dueAt: null, recent: [] }
  const found = context.decisions.obstacle({ ...situation, watch: sent, hubBusy: false, budgetUntil: undefined })
  const isFresh = context.now - readAt <= FRESH_MS && !watched.hasStopped
  return found === undefined && hub.restarting === watched && isFresh
}

export function restartEnded(turn: Turn, order: Restart, outcome: Outcome): void {
  const { watched, why, event } = order
  watched.answered = true
  if (outcome.ok) {
    watched.memory = noMemory(watched.id, turn.now)
    watched.rising = false
    emit(turn, watched.id, event, why)
  } else restartFailed(turn, order, outcome.error.code)
  settle(turn, watched)
}

/** Plans another attempt, or gives up. */
function restartFailed(turn: Turn, { watched, entry, event, readAt }: Restart, code: ErrorCode): void {
  const { hub, now } = turn
  const wasRestarting = watched.watch.sentAt !== null
  if (!NOTHING_DONE.has(code) && !PERMANENT.has(code)) {
    watched.history = watched.history.map((one) => (one === entry ? { ...entry, message: code } : one))
    // With `outcome_unknown`, the hub may have restarted the app.
    if (code !== 'outcome_unknown' && wasRestarting) endRestart(turn, watched)
    return
  }
  const older = watched.history[watched.history.indexOf(entry) + 1]
  if (watched.resetAfter === entry.at) watched.resetAfter = older?.at ?? null
  watched.history = watched.history.filter((one) => one !== entry)
  watched.watch = unlessStopped(watched, watch.withdrawn(watched.watch, readAt))
  hub.restarts = hub.restarts.filter((at) => at !== readAt)
  if (PERMANENT.has(code)) giveUp(turn, watched, code)
  else if (wasRestarting) watched.aloneUntil = Math.max(watched.aloneUntil, now + ALONE_MS)
  const { retries, dueAt } = watched.watch
  // The hub did not attempt this restart, so try the restart again as soon as possible.
  if (event === 'retried' && dueAt !== null && NOTHING_DONE.has(code)) {
    watched.watch = { ...watched.watch, dueAt: now, retries: Math.max(0, retries - 1) }
  }
}
