/** One restart at a time on a hub: what stands against it, how it is sent, and what becomes of it. */
import type { Outcome } from '../contract/answer.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { ALONE_MS } from './inputs.ts'
import * as watch from './restart-state.ts'
import { noMemory } from './trend.ts'
import { type Context, isBusy, mayAct, type Order, type Turn, tell, type WatchedHub } from './turn.ts'
import { endRestart, giveUp, isDue, isOn, note, settle, unlessStopped, type WatchedApp } from './watched-app.ts'

const NOTHING_DONE: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited'])
const HOPELESS: ReadonlySet<ErrorCode> = new Set(['not_allowed', 'forbidden', 'unsupported', 'unauthorized'])
/** So old may be what was read of an app when its restart leaves. */
const FRESH_MS = 5_000

/** Everything that may stand against a restart that is due. Times are `elapsed` milliseconds. */
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
    hubBusy: isBusy(hub),
  }
}

/** Looks at everything that is due on a hub, the longest due first. */
export function tryRestarts(turn: Turn, hub: WatchedHub, due: WatchedApp[]): void {
  due.sort((a, b) => (a.watch.dueAt ?? 0) - (b.watch.dueAt ?? 0))
  for (const watched of due) {
    if (!mayRestart(turn, watched, situationOf(turn, hub, watched))) continue
    hub.restarting = watched
    watched.answered = false
    turn.effects.push({ kind: 'read', watched })
  }
}

/** Whether a due restart may run. If not, it stays due, or this postpones it, cancels it or gives up. */
function mayRestart(turn: Turn, watched: WatchedApp, situation: Situation): boolean {
  const found = turn.decisions.obstacle(situation)
  if (found === undefined || found === 'hold') return found === undefined
  if (found === 'cancel') watched.watch = watch.stopped({ ...watched.watch, phase: 'idle' })
  else if (found === 'give_up') giveUp(turn, watched, 'More restarts than configuration allows.')
  else postpone(turn, watched, found)
  settle(turn, watched)
  return false
}

function postpone(context: Context, watched: WatchedApp, until: number): void {
  watched.watch = watch.postponed(watched.watch, until)
  watched.quietDue = context.quietUntil() === undefined ? undefined : until
}

/** What is known of an app may be an hour old: it has been read anew, and that decides. */
export function wasRead(turn: Turn, hub: WatchedHub, watched: WatchedApp, isRead: boolean): void {
  const situation = { ...situationOf(turn, hub, watched), hubBusy: false }
  if (isRead && hub.restarting === watched && isDue(turn, watched) && mayRestart(turn, watched, situation)) {
    sendRestart(turn, watched)
    return
  }
  watched.answered = true
  watched.failedReads = isRead ? 0 : watched.failedReads + 1
  if (isRead || watched.watch.phase !== 'waiting') return
  const failures = watched.watch.recent.length + watched.failedReads
  postpone(turn, watched, turn.now + turn.decisions.delayAfter(failures, turn.config.guard))
  settle(turn, watched)
}

function sendRestart(turn: Turn, watched: WatchedApp): void {
  const { why } = watched.watch
  watched.watch = watch.restarting(watched.watch, turn.now)
  watched.hasStopped = false
  watched.listsUp = 0
  watched.failedReads = 0
  const entry = note(turn, watched, 'restart', why, 'guard', null)
  settle(turn, watched)
  const order = { watched, command: 'restart', payload: {}, why, entry, readAt: turn.now } as const
  turn.effects.push({ kind: 'order', order })
}

type Restart = Extract<Order, { command: 'restart' }>

/** Whether a restart is wanted still when its turn comes. */
export function isWanted(context: Context, hub: WatchedHub, { watched, readAt }: Restart): boolean {
  const situation = situationOf(context, hub, watched)
  const sent = { ...watched.watch, dueAt: null, recent: [] }
  const found = context.decisions.obstacle({ ...situation, watch: sent, hubBusy: false })
  const isFresh = context.now - readAt <= FRESH_MS && !watched.hasStopped
  return found === undefined && hub.restarting === watched && isFresh
}

export function restartEnded(turn: Turn, { watched, why, entry }: Restart, outcome: Outcome): void {
  watched.answered = true
  if (outcome.ok) {
    watched.memory = noMemory(watched.id)
    watched.rising = false
    tell(turn, watched.id, 'restarted', why)
  } else restartFailed(turn, watched, entry, outcome.error.code)
  settle(turn, watched)
}

/** It came to nothing, as far as is known: it is tried again after a while, or never. */
function restartFailed(turn: Turn, watched: WatchedApp, entry: Restart['entry'], code: ErrorCode): void {
  const wasRestarting = watched.watch.phase === 'restarting'
  if (!NOTHING_DONE.has(code) && !HOPELESS.has(code)) {
    watched.history = watched.history.map((one) => (one === entry ? { ...entry, message: code } : one))
    // Otherwise it has perhaps been done.
    if (code !== 'outcome_unknown' && wasRestarting) endRestart(turn, watched)
    return
  }
  watched.history = watched.history.filter((one) => one !== entry)
  watched.watch = unlessStopped(watched, watch.withdrawn(watched.watch))
  if (HOPELESS.has(code)) giveUp(turn, watched, code)
  else if (wasRestarting) watched.aloneUntil = Math.max(watched.aloneUntil, turn.now + ALONE_MS)
}
