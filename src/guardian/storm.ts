/** Storms: which crashes make one, when it ends, and what it means for the apps. */
import { MAX_APPS_NAMED } from '../contract/guard.ts'
import type { Decisions } from './decisions.ts'
import { postponed } from './restart-state.ts'
import type { GuardConfig } from './settings.ts'
import { CALM, type Context, type Storm, stormUntil, type Turn } from './turn.ts'
import { isOn, settle, type WatchedApp } from './watched-app.ts'

/** Whether a crash of an app counts. If the configuration watches no apps, crashes of all apps do. */
export function countsForStorm(context: Context, watched: WatchedApp): boolean {
  const { config, patterns } = context
  const { id, enabled } = watched.app
  const isWatched = config.guard.watch.length === 0 ? !patterns.ignores(id) : isOn(context, watched)
  return isWatched && enabled !== false && watched.watch.phase !== 'given_up'
}

/** Adds a crash, and decides whether the crashes are a storm. */
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
  // The hub may start an app that keeps crashing: the others must not wait for that one.
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
    spare(watched, max_restarts)
    if (watched === undefined || id === app || !turn.isActing) continue
    // A bridge that starts during the storm reads this from the broker.
    if (watched.watch.phase === 'waiting') watched.watch = postponed(watched.watch, now + storm.within)
    settle(turn, watched)
  }
  if (!before.isOn) tellStorm(turn, 'storm')
}

/** Does not count the app's next restart. Limited, because an app that always crashes may cause the storms. */
function spare(watched: WatchedApp | undefined, most: number): void {
  if (watched?.watch.down && watched.watch.spared < most) watched.watch = { ...watched.watch, isSpared: true }
}

export function followStorm(turn: Turn): void {
  const { hub, now, config } = turn
  const until = stormUntil(hub.storm, config.guard.storm.within)
  if (until === undefined || until > now) return
  tellStorm(turn, 'storm_over')
  hub.storm = CALM
}

function tellStorm({ hub, wall, events }: Turn, event_type: 'storm' | 'storm_over'): void {
  const apps = [...hub.storm.crashes.keys()].slice(0, MAX_APPS_NAMED)
  events.push({ event_type, app: null, apps, at: new Date(wall).toISOString() })
}
