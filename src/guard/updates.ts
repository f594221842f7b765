/** Updates in a window: which app is next, and what became of the one before. One at a time, over all hubs. */
import { nextAfter } from '../base/cron.ts'
import type { Offer } from '../contract/guard.ts'
import type { App } from '../hub/app.ts'
import type { GuardConfig } from './settings.ts'

const DAY_SECONDS = 24 * 3600
/** The broker is given the time for which an offer was seen in such steps. */
const STEP_SECONDS = 15 * 60
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
  readonly offered: Offer | null
  /** Whether its hub installs a version that is named. */
  readonly takesVersion: boolean
  /** Whether it was tried not long ago. */
  readonly failed: boolean
}

/**
 * Whether an app is to be updated now, while the window is open. `unheld`: it never is, as a version is to be held first
 * and the hub does not say or does not take which one it installs.
 */
export function verdictOn(candidate: Candidate, holdDays: number): 'due' | 'later' | 'unheld' {
  const { app, leftOut, offered, takesVersion, failed } = candidate
  if (app.update_available !== true || app.enabled === false || leftOut || failed || offered === null) return 'later'
  if (holdDays > 0 && (offered.version === null || !takesVersion)) return 'unheld'
  return offered.version === app.latest_version && offered.seen_seconds >= holdDays * DAY_SECONDS ? 'due' : 'later'
}

/**
 * The offer of an app that was seen again after `gapMs`. Each version counts for itself.
 * @param at ISO 8601
 */
export function offerOf(app: App, before: Offer | null, gapMs: number, at: string): Offer | null {
  const { update_available, latest_version: version } = app
  if (update_available !== true) return null
  if (before === null || before.version !== version) return { version, since: at, seen_seconds: 0 }
  return { ...before, seen_seconds: before.seen_seconds + gapMs / 1000 }
}

/** An offer as the broker holds it: it changes seldom, and no more once it has been held. */
export function shownOffer(offer: Offer | null, holdDays: number): Offer | null {
  if (offer === null) return null
  const steps = Math.floor(Math.min(offer.seen_seconds, holdDays * DAY_SECONDS) / STEP_SECONDS)
  return { ...offer, seen_seconds: steps * STEP_SECONDS }
}
