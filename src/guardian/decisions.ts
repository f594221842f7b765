/** What the guardian decides, one function each: tests replace one by a wrong one and check that it is noticed. */

import { nextAfter } from '../base/cron.ts'
import { severityOf } from '../base/versions.ts'
import { hasCrashed, isCrashed, isUp } from '../contract/classify.ts'
import type { App } from '../hub/app.ts'
import { countRecent, delayAfter, type RestartLimits, type RestartState, retryDelay } from './restart-state.ts'
import type { Situation } from './restarts.ts'
import { isRising } from './trend.ts'
import type { Boot, Links } from './turn.ts'

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
    it.stormUntil ?? 0,
    it.budgetUntil ?? 0,
  )
  if (until > now) return until
  if (watch.phase !== 'given_up' && hasUsedUp(watch, now, it.limits)) return 'give_up'
  return it.hubBusy ? 'hold' : undefined
}

/** Whether an app is down after a crash. The flag alone does not count for one that runs. */
export function isFallen({ down }: RestartState, app: App): boolean {
  return down || (isCrashed(app) && !isUp(app))
}

/** Whether there may be no further restart within the window. */
export function hasUsedUp(watch: RestartState, now: number, limits: RestartLimits): boolean {
  return !watch.isSpared && countRecent(watch.recent, now, limits) >= limits.max_restarts
}

/** Until when all apps of a hub have to wait, after so many restarts; `undefined`: there may be one. */
export function budgetUntil(times: readonly number[], now: number, limits: RestartLimits): number | undefined {
  const oldest = times.filter((at) => at > now - limits.window).at(-limits.hub_max_restarts)
  return oldest === undefined ? undefined : oldest + limits.window
}

/** Whether so many apps that have crashed make a storm. */
export const isStorm = (crashed: number, least: number) => crashed >= least

/** Differences by which a clock that is set, or read late, is told apart from a start of the hub. */
const BOOT_MS = 120_000

/** Whether the hub has started anew, and was not only unreachable: by its own words and by the time gone by. */
export function hasBooted(before: Boot, after: Boot): boolean {
  return after.at - before.at > BOOT_MS && after.said - before.said > BOOT_MS
}

/** Whether so many devices of an app are unavailable that it should be restarted; unknown never is. */
export function isUnavailable(least: number | 'all' | undefined, links: Links | null): boolean {
  const { devices = null, devices_unavailable: away = null } = links ?? {}
  if (least === undefined || devices === null || away === null) return false
  return least === 'all' ? devices > 0 && away >= devices : away >= least
}

const STEPS = ['patch', 'minor', 'major'] as const

/** Whether a step between two versions may be installed; one that is not known counts as a major one. */
export function mayInstall(app: App, largest: (typeof STEPS)[number] = 'major'): boolean {
  const severity = severityOf(app.version, app.latest_version) ?? 'major'
  return severity === 'none' ? largest === 'major' : STEPS.indexOf(severity) <= STEPS.indexOf(largest)
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

export const DECISIONS = {
  hasCrashed,
  obstacle,
  hasUsedUp,
  delayAfter,
  retryDelay,
  budgetUntil,
  isStorm,
  hasBooted,
  isUnavailable,
  mayInstall,
  quietUntil,
  isRising,
  isBad,
} as const
export type Decisions = typeof DECISIONS
