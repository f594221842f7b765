/** Detects when a storm of crashes begins and when it is over, and postpones restarts in between. */
import { MAX_APPS_NAMED } from '../contract/guard.ts'
import type { Decisions } from './decisions.ts'
import { postponed } from './restart-state.ts'
import type { GuardConfig } from './settings.ts'
import { CALM, type Context, type Storm, stormUntil, type Turn } from './turn.ts'
import { isOn, settle, type WatchedApp } from './watched-app.ts'

/** Whether crashes of the app count towards a storm. If `guard.watch` is empty, all apps that are not ignored count. */
export function countsForStorm(context: Context, watched: WatchedApp): boolean {
  const { config, patterns } = context
  const { id, enabled } = watched.app
  const isWatched = config.guard.watch.length === 0 ? !patterns.ignores(id) : isOn(context, watched)
  return isWatched && enabled !== false && watched.watch.phase !== 'given_up'
}

export function afterCrash(
  { isOn, crashes: before }: Storm,
  app: string,
  now: number,
  { guard: { storm, max_restarts } }: GuardConfig,
  { isStorm }: Decisions,
): Storm {
  const crashes = new Map(before)
  if (!isOn) for (const [id, { at }] of crashes) if (at <= now - storm.within) crashes.delete(id)
  const times = (crashes.get(app)?.times ?? 0) + 1
  // Ignore further crashes of an app that keeps crashing, so that they do not prolong the storm for the other apps.
  if (times > max_restarts) return { isOn, crashes }
  crashes.set(app, { at: now, times })
  return { isOn: isOn || isStorm(crashes.size, storm.apps), crashes }
}

export function countCrash(turn: Turn, app: string): void {
  const { hub, now, config, decisions } = turn
  const { storm, max_restarts } = config.guard
  const before = hub.storm
  const { isOn, crashes } = afterCrash(before, app, now, config, decisions)
  hub.storm = { isOn, crashes }
  turn.hasMoved = true
  if (!isOn || crashes.get(app)?.at !== now) return
  for (const id of before.isOn ? [app] : crashes.keys()) {
    const watched = hub.apps.get(id)
    if (watched === undefined) continue
    // Exempt the app's next restart from the limit, but not too often, in case the app itself causes the storms.
    const { down, spared } = watched.watch
    if (down && spared < max_restarts) watched.watch = { ...watched.watch, isSpared: true }
    if (id === app || !turn.isActing) continue
    // Publish the postponed time, because a bridge that starts during the storm reads it from the broker.
    if (watched.watch.phase === 'waiting') watched.watch = postponed(watched.watch, now + storm.within)
    settle(turn, watched)
  }
  if (!before.isOn) emitStorm(turn, 'storm')
}

export function followStorm(turn: Turn): void {
  const { hub, now, config } = turn
  const until = stormUntil(hub.storm, config.guard.storm.within)
  if (until === undefined || until > now) return
  emitStorm(turn, 'storm_over')
  hub.storm = CALM
}

function emitStorm({ hub, wall, events }: Turn, event_type: 'storm' | 'storm_over'): void {
  const apps = [...hub.storm.crashes.keys()].slice(0, MAX_APPS_NAMED)
  events.push({ event_type, app: null, apps, at: new Date(wall).toISOString() })
}
