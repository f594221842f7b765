/** The guardian's decisions. For each function, at least one test must fail if its decision is wrong. */

import { nextAfter } from '../base/cron.ts'
import { severityOf } from '../base/versions.ts'
import type { Links } from '../bridge/guarding.ts'
import { hasCrashed, isCrashed, isUp } from '../contract/classify.ts'
import { SAME_BOOT_MS } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import {
  countRecent,
  delayAfter,
  isScheduled,
  type RestartLimits,
  type RestartState,
  retryDelay,
} from './restart-state.ts'
import type { Situation } from './restarts.ts'
import { isRising } from './trend.ts'
import type { Boot } from './turn.ts'

/** Time for the apps to start after a hub is back online. */
export const SETTLING_MS = 120_000
const BAD_CRASHES = 3
export const BAD_WITHIN_MS = 30 * 60_000

/** An obstacle to a restart: the time when it ends, `hold` for a temporary condition, or a decision not to restart. */
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

/** Whether an app has crashed or was stopped by the hub. Ignores the crash flag while the app is running. */
export const isFallen = ({ down }: RestartState, app: App): boolean => down || (isCrashed(app) && !isUp(app))

export function hasUsedUp(watch: RestartState, now: number, limits: RestartLimits): boolean {
  return !watch.isSpared && !isScheduled(watch) && countRecent(watch.recent, now, limits) >= limits.max_restarts
}

/** Returns when apps of a hub that had too many restarts may restart again; `undefined` if they may restart now. */
export function budgetUntil(times: readonly number[], now: number, limits: RestartLimits): number | undefined {
  const oldest = times.filter((at) => at > now - limits.window).at(-limits.hub_max_restarts)
  return oldest === undefined ? undefined : oldest + limits.window
}

export const isStorm = (crashed: number, least: number) => crashed >= least

/** Whether the hub has restarted and was not only unreachable. The two start times of `Boot` must both show this. */
export function hasBooted(before: Boot, after: Boot): boolean {
  return after.at - before.at > SAME_BOOT_MS && after.reportedAt - before.reportedAt > SAME_BOOT_MS
}

/** Whether enough devices of an app are unavailable to restart the app; `false` if the numbers are unknown. */
export function isUnavailable(least: number | 'all' | undefined, links: Links | null): boolean {
  const { devices = null, devices_unavailable: away = null } = links ?? {}
  if (least === undefined || devices === null || away === null) return false
  return least === 'all' ? devices > 0 && away >= devices : away >= least
}

const STEPS = ['patch', 'minor', 'major'] as const

/**
 * Whether an update is not a downgrade, and its version step is at most `largest`. An unknown step counts as a major
 * step.
 */
export function mayInstall(app: App, largest: (typeof STEPS)[number] = 'major'): boolean {
  const { version, latest_version: offered } = app
  // Some hubs keep offering the installed version.
  if (version !== null && version === offered) return false
  const severity = severityOf(version, offered) ?? 'major'
  if (severity !== 'none') return STEPS.indexOf(severity) <= STEPS.indexOf(largest)
  // If the reverse step is not an upgrade either, the versions differ only in their spelling or build metadata.
  return largest === 'major' && severityOf(offered, version) === 'none'
}

export function isBad(crashes: number, sinceUpdateMs: number): boolean {
  return crashes >= BAD_CRASHES && sinceUpdateMs <= BAD_WITHIN_MS
}

/**
 * Returns the end of the current quiet hours in epoch milliseconds; `undefined` outside quiet hours.
 * @param hours for example `23:00-07:00`; `null` if there are no quiet hours
 */
export function quietUntil(hours: string | null, timeZone: string | null, now: number): number | undefined {
  if (hours === null) return undefined
  const [start, end] = hours.split('-').map((time) => nextAfter(daily(time), timeZone ?? undefined, now))
  // During quiet hours, the next end is before the next start. If both times are equal, there are no quiet hours.
  return end !== undefined && end < (start ?? 0) ? end : undefined
}

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
