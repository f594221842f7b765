/** Updates in a window: which app is next, and what became of the one before. One at a time, over all hubs. */
import { nextAfter } from '../base/cron.ts'
import type { App } from '../model/app.ts'
import type { GuardConfig } from './settings.ts'

const DAY_MS = 24 * 3_600_000
/** How long a hub may take to report the new version after it has taken the install. */
export const VERIFY_MS = 10 * 60_000

/** The window of updates, seen from a moment: whether it is open, and until when that stays so, in epoch milliseconds. */
export interface Window {
  readonly open: boolean
  readonly until: number
}

export function windowAt({ updates }: GuardConfig, now: number): Window {
  const { policy, window, time_zone } = updates
  if (policy === 'manual' || window.start === null) return { open: false, until: Number.POSITIVE_INFINITY }
  const opened = nextAfter(window.start, time_zone ?? undefined, now - window.length) ?? Number.POSITIVE_INFINITY
  return opened <= now ? { open: true, until: opened + window.length } : { open: false, until: opened }
}

/** What is known of an app that may be updated. */
export interface Candidate {
  readonly app: App
  /** Whether a person has it left out: switched off, at rest, or ignored. */
  readonly leftOut: boolean
  /** Since when its update is on offer, in epoch milliseconds. */
  readonly offeredSince: number | undefined
  /** Until when it is not tried again. */
  readonly failedUntil: number
}

/** Whether an app is to be updated now, while the window is open. */
export function isDue({ app, leftOut, offeredSince, failedUntil }: Candidate, holdDays: number, now: number): boolean {
  if (app.update_available !== true || app.enabled === false || leftOut || failedUntil > now) return false
  return offeredSince !== undefined && now - offeredSince >= holdDays * DAY_MS
}

/** Whether the hub reports what was installed. */
export function isUpdated(app: App, from: string | null, to: string | null): boolean {
  if (to !== null) return app.version === to
  return app.version !== null && app.version !== from
}
