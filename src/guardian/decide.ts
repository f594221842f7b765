/** Computes the guardian's effects from the state of a hub and an input. */

import { MAX_APPS_NAMED } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import * as inputs from './inputs.ts'
import * as watch from './restart-state.ts'
import { isWanted, restartEnded, tryRestarts, wasRead } from './restarts.ts'
import { countCrash, followStorm } from './storm.ts'
import {
  CALM,
  type Context,
  type Decision,
  type Input,
  type InputOf,
  mayAct,
  type Order,
  stormUntil,
  type Turn,
  type WatchedHub,
} from './turn.ts'
import { backedUp, followUpdate, installAnswered, isStillWanted, startUpdate } from './updates.ts'
import { dueAfter, isDue, isOn, isRestarting, settle, WatchedApp } from './watched-app.ts'

export function decide(hub: WatchedHub, input: Input, context: Context): Decision {
  const turn: Turn = { ...context, hub, events: [], facts: new Set(), attention: false, effects: [], hasMoved: false }
  handle(turn, input)
  // Usage changes are by far the most frequent inputs, and never make an action due.
  const isUsage = input.kind === 'requested' || (input.kind === 'apps' && !input.read && hub.update === null)
  if (!isUsage || turn.hasMoved) proceed(turn)
  if (turn.isActing && !isUsage) startUpdate(turn)
  return turn
}

const HANDLERS: { readonly [K in Input['kind']]: (turn: Turn, input: InputOf<K>) => void } = {
  apps: appsChanged,
  activate,
  configured,
  online: setOnline,
  booted,
  links: (turn, { links }) => inputs.linked(turn, links),
  crashed: (turn, { app }) => countCrash(turn, app),
  command: (turn, { run }) => inputs.commanded(turn, run),
  control: (turn, { app, control }) => inputs.control(turn, app, control),
  schedule,
  wake() {},
  read: (turn, { watched, isRead }) => wasRead(turn, watched, isRead),
  requested: (_, { watched, isGood }) => inputs.wasRequested(watched, isGood),
  backup: (turn, { update, failure }) => backedUp(turn, update, failure),
  outcome(turn, { order, outcome }) {
    if (order.command === 'restart') restartEnded(turn, order, outcome)
    else if (order.command === 'install') installAnswered(turn, order.update, outcome)
  },
}

function handle<K extends Input['kind']>(turn: Turn, input: InputOf<K>): void {
  HANDLERS[input.kind](turn, input)
}

/** Called immediately before the order is carried out. */
export function isCurrent(hub: WatchedHub, order: Order, context: Context): boolean {
  if (order.command === 'restart') return isWanted(context, hub, order)
  if (!mayAct(context)) return false
  if (order.command === 'update') return true
  return order.watched.app.version === order.update.from && isStillWanted(context, order.update)
}

/** Starts actions that are due, and completes actions that have ended. */
function proceed(turn: Turn): void {
  const { hub, now, isActing } = turn
  if (turn.isActive) followStorm(turn)
  const due: WatchedApp[] = []
  if (isActing) {
    for (const watched of hub.apps.values()) {
      if (dueAfter(turn, watched, hub.checkedAt) <= now) settle(turn, watched)
      if (isDue(turn, watched)) due.push(watched)
    }
    hub.checkedAt = now
    if (hub.update !== null) followUpdate(turn, hub.update)
  }
  const { restarting } = hub
  if (restarting !== null && !isRestarting(restarting)) hub.restarting = null
  if (due.length > 0) tryRestarts(turn, due)
  countAttention(turn)
  const stormEnd = stormUntil(hub.storm, turn.config.guard.storm.within) ?? Number.POSITIVE_INFINITY
  const { deadline, aloneUntil = 0 } = hub.update ?? {}
  const aloneEnd = aloneUntil > now ? aloneUntil : Number.POSITIVE_INFINITY
  hub.wakeAt = Math.min(stormEnd, aloneEnd, deadline ?? Number.POSITIVE_INFINITY)
  for (const watched of hub.apps.values()) hub.wakeAt = Math.min(hub.wakeAt, dueAfter(turn, watched, now))
}

function countAttention(turn: Turn): void {
  const { hub } = turn
  const ids: string[] = []
  for (const { id, facts } of hub.apps.values()) if (facts?.state.attention.length) ids.push(id)
  const attention = ids.sort().slice(0, MAX_APPS_NAMED)
  if (attention.join('\n') === hub.attention.join('\n')) return
  hub.attention = attention
  turn.attention = true
}

function appsChanged(turn: Turn, { changes, read, silent }: InputOf<'apps'>): void {
  const { hub } = turn
  let isListChanged = false
  for (const { id, before, after } of changes) {
    if (after === undefined) appRemoved(turn, id, silent)
    else appChanged(turn, before, after)
    isListChanged ||= before === undefined || after === undefined
  }
  // Forget all remembered apps if the list became empty only because the configuration or the hub has changed.
  if (silent && hub.apps.size === 0) hub.gone.clear()
  hub.isRead ||= read
  if (read) recall(turn)
  else if (isListChanged) updateGoneApps(turn)
  if (!read || !turn.isActing) return
  const apps = [...hub.apps.values()]
  const reportsUsage = apps.some(({ app }) => app.memory_bytes !== null || app.cpu_percent !== null)
  for (const watched of apps) inputs.wasListed(turn, watched, reportsUsage)
}

function appChanged(turn: Turn, before: App | undefined, after: App): void {
  const { hub } = turn
  const watched = hub.apps.get(after.id)
  if (watched === undefined) appAdded(turn, after)
  else if (turn.isActing) inputs.changed(turn, watched, before ?? watched.app, after)
  else recordApp(watched, after)
}

/** Records the app's data without a decision about it, because this bridge is not active or the guardian is off. */
function recordApp(watched: WatchedApp, app: App): void {
  watched.app = app
  watched.seenAt = undefined
}

/** Handles an app that is new, or that reappears within a day. */
function appAdded(turn: Turn, app: App): void {
  const { hub } = turn
  const remembered = hub.gone.take(turn.now, app.id)
  const isBack = remembered instanceof WatchedApp
  const watched = isBack ? remembered : new WatchedApp(app, turn.now)
  hub.apps.set(app.id, watched)
  turn.hasMoved = true
  if (!turn.isActing) recordApp(watched, app)
  else if (isBack) {
    inputs.changed(turn, watched, watched.app, app)
    turn.facts.add(app.id)
  } else inputs.start(turn, watched, remembered ?? turn.saved.take(hub.name, app.id))
}

function appRemoved(turn: Turn, id: string, silent: boolean): void {
  const { hub } = turn
  const watched = hub.apps.get(id)
  if (watched === undefined) return
  // The app's absence does not count towards the hold time of its update.
  watched.seenAt = undefined
  if (!silent) hub.gone.add(turn.now, id, watched)
  hub.apps.delete(id)
  if (hub.restarting === watched) hub.restarting = null
  turn.hasMoved = true
}

/** Restores the saved states of apps that are missing from the hub's list. */
function recall(turn: Turn): void {
  const { hub } = turn
  if (!turn.isActing) return
  for (const { app, saved, hours } of turn.saved.takeAll(hub.name)) {
    if (!hub.apps.has(app) && !hub.gone.has(app)) hub.gone.add(turn.now, app, saved, hours)
  }
  updateGoneApps(turn)
}

function updateGoneApps(turn: Turn): void {
  const { hub } = turn
  if (!turn.isActing || !hub.isRead) return
  const payload = hub.gone.payload(turn.now)
  if (JSON.stringify(payload) === JSON.stringify(hub.goneApps)) return
  hub.goneApps = payload
  turn.attention = true
}

function activate(turn: Turn, { restore }: InputOf<'activate'>): void {
  const { hub } = turn
  if (restore) {
    hub.gone.clear()
    hub.storm = CALM
    hub.restarts = []
  }
  // Discard the saved states, because this process has newer data.
  else if (hub.isRead) turn.saved.takeAll(hub.name)
  for (const watched of hub.apps.values()) {
    const saved = turn.saved.take(hub.name, watched.id)
    if (!turn.isActing) continue
    if (restore) inputs.start(turn, watched, saved)
    else settle(turn, watched)
  }
  if (hub.isRead) recall(turn)
  // Send no event for an update that may have ended while another bridge was active.
  if (restore && hub.update !== null && hub.update.deadline !== null) hub.update = null
}

function configured(turn: Turn, { wasOn, isOn }: InputOf<'configured'>): void {
  const { hub } = turn
  for (const watched of hub.apps.values()) {
    // Make a postponed restart due now, so that its obstacles are checked again under the new configuration.
    if (watched.watch.dueAt === watched.postponedTo) watched.watch = { ...watched.watch, dueAt: turn.now }
    inputs.limitWait(turn, watched)
    if (turn.isActing && wasOn) settle(turn, watched)
    else if (turn.isActing) inputs.start(turn, watched, turn.saved.take(hub.name, watched.id), true)
    if (wasOn !== isOn) turn.facts.add(watched.id)
  }
  if (wasOn !== isOn) turn.attention = true
}

function setOnline({ hub, now }: Turn, { online }: InputOf<'online'>): void {
  if (!online) hub.wasAway = true
  if (hub.online === online) return
  hub.online = online
  if (online && hub.wasAway) hub.backAt = now
  if (!online) hub.offlineAt = now
  for (const watched of hub.apps.values()) {
    if (!online) watched.seenAt = undefined
    else skipTime(watched, Math.max(0, now - hub.offlineAt), now)
  }
}

/** Excludes the time for which the hub was offline from the limits of `guard.change_limit` and `guard.unavailable`. */
function skipTime(watched: WatchedApp, ms: number, now: number): void {
  watched.changedAt = Math.min(watched.changedAt + ms, now)
  if (watched.away !== undefined) watched.away = { ...watched.away, since: watched.away.since + ms }
}

/** Plans the restarts of `guard.after_boot` when the hub has started, unless the hub was only unreachable. */
function booted(turn: Turn, { at: reportedAt }: InputOf<'booted'>): void {
  const { hub } = turn
  const before = hub.boot
  const boot = { at: turn.now - (turn.wall - reportedAt), reportedAt }
  const hasBooted = before !== undefined && turn.decisions.hasBooted(before, boot)
  hub.boot = before === undefined || hasBooted ? boot : { ...before, reportedAt }
  if (before !== undefined && !hasBooted) return
  turn.hasMoved = true
  if (!turn.isActing) return
  for (const watched of hub.apps.values()) {
    inputs.awaitBoot(turn, watched, hasBooted)
    // Start the planned restart if it is already due.
    settle(turn, watched)
  }
}

function schedule(turn: Turn, { fits }: InputOf<'schedule'>): void {
  const { hub } = turn
  if (!mayAct(turn)) return
  const { now } = turn
  for (const watched of hub.apps.values()) {
    if (!fits(watched.id)) continue
    const why = whyNotNow(turn, watched)
    if (why === undefined) {
      watched.watch = watch.planned(watched.watch, 'schedule', now, true)
      settle(turn, watched)
    } else {
      const text = `no scheduled restart: ${why}`
      turn.effects.push({ kind: 'log', level: 'info', details: { app: watched.id }, text })
    }
  }
}

function whyNotNow(turn: Turn, watched: WatchedApp): string | undefined {
  const { app, watch } = watched
  if (!turn.hub.online) return 'the hub is offline'
  if (turn.quietUntil() !== undefined) return 'quiet hours'
  if (!isOn(turn, watched)) return 'the app is not watched'
  if (app.enabled === false) return 'the app is disabled'
  if (app.state !== 'running') return 'the app is not running'
  if ((watch.snoozedUntil ?? 0) > turn.now) return 'the app is snoozed'
  return watch.phase === 'idle' ? undefined : 'the app is being restarted, or was given up'
}
