/** What the guardian decides, one function each: tests replace one by a wrong one and check that it is noticed. */

import { nextAfter } from '../base/cron.ts'
import { hasCrashed, isCrashed, isUp } from '../contract/classify.ts'
import type { App } from '../hub/app.ts'
import { countRecent, delayAfter, type RestartLimits, type RestartState } from './restart-state.ts'
import type { Situation } from './restarts.ts'
import { isRising } from './trend.ts'

/** After a hub has come back, its apps are still starting. */
const SETTLING_MS = 120_000
const BAD_CRASHES = 3
export const BAD_WITHIN_MS = 30 * 60_000

/** What prevents a restart: a time until which to wait, a condition that ends by itself, or a reason not to restart. */
type Obstacle = number | 'hold' | 'cancel' | 'give_up' | undefined

export function obstacle(it: Situation): Obstacle {
  const { watch, app, now } = it
  if (!it.on || app.enabled === false) return 'cancel'
  if (!watch.forced && !isFallen(watch, app)) return 'cancel'
  if (watch.forced && app.state !== 'running') return 'cancel'
  if (!it.mayAct || !it.hubOnline || it.installing) return 'hold'
  const until = Math.max(
    watch.snoozedUntil ?? 0,
    it.hubBackAt === null ? 0 : it.hubBackAt + SETTLING_MS,
    it.aloneUntil,
    it.quietUntil ?? 0,
  )
  if (until > now) return until
  if (hasUsedUp(watch, now, it.limits)) return 'give_up'
  return it.hubBusy ? 'hold' : undefined
}

/** Whether an app is down after a crash. The flag alone does not count for one that runs. */
export function isFallen({ down }: RestartState, app: App): boolean {
  return down || (isCrashed(app) && !isUp(app))
}

/** Whether there may be no further restart within the window. */
export function hasUsedUp(watch: RestartState, now: number, limits: RestartLimits): boolean {
  return countRecent(watch.recent, now, limits) >= limits.max_restarts
}

/** Whether crashes since an update make it a bad one. */
export function isBad(crashes: number, sinceUpdateMs: number): boolean {
  return crashes >= BAD_CRASHES && sinceUpdateMs <= BAD_WITHIN_MS
}

/**
 * The end of the current quiet hours, in epoch milliseconds; `undefined` outside of them.
 * @param hours such as `23:00-07:00`; `null`: there are none
 */
export function quietUntil(hours: string | null, timeZone: string | null, now: number): number | undefined {
  if (hours === null) return undefined
  const [begin, end] = hours.split('-').map((time) => nextAfter(daily(time), timeZone ?? undefined, now))
  // Within them, their end comes first. The same time twice means never.
  return end !== undefined && end < (begin ?? 0) ? end : undefined
}

/** `07:30` as a cron expression. */
const daily = (time: string) => `${time.split(':').reverse().map(Number).join(' ')} * * *`

export const DECISIONS = { hasCrashed, obstacle, hasUsedUp, delayAfter, quietUntil, isRising, isBad } as const
export type Decisions = typeof DECISIONS
