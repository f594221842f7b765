/** Decides whether a change is a crash, and determines its reason from the hub's message. */

import { type App, exitOf } from '../hub/app.ts'
import { MAX_GUARD_MESSAGE, type Reason } from './guard.ts'

/** Message patterns, most reliable first, because a stack trace may contain any of the others. */
const TEXTS: readonly (readonly [RegExp, Reason])[] = [
  [/cpu warning limit|cpu limit/i, 'cpu_limit'],
  [/too many memwarns|memory (?:warning )?limit|heap out of memory|out of memory/i, 'memory_limit'],
  [/unloaded by homey core|unloaded by the hub/i, 'unloaded'],
  [/^[ \t]*at .+[:)]|^[ \t]*File ".+", line \d|^Traceback /m, 'exception'],
  [/\bSIGKILL\b|\bkilled\b/i, 'killed'],
  [/\b[A-Z]\w*(?:Error|Exception)\b|^Error\b|\bunhandled\b|\buncaught\b/im, 'exception'],
  [/\bunloaded\b/i, 'unloaded'],
]

/** @param signal how the app's process exited, which only older hubs report, often without a message */
export function reasonOf(message: string | null, signal: string | null = null): Reason {
  const reason = TEXTS.find(([text]) => text.test(message ?? ''))?.[1]
  return reason ?? (signal === 'SIGKILL' ? 'killed' : 'unknown')
}

export const crashReasonOf = (app: App): Reason => reasonOf(app.crash_message, exitOf(app).signal)

/** Returns the message on one line, short enough to be stored many times. */
export function headOf(message: string | null): string | null {
  if (message === null) return null
  const line = message.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  // Do not end with half a surrogate pair.
  return line.slice(0, MAX_GUARD_MESSAGE).replace(/[\ud800-\udbff]$/, '')
}

export function isCrashed(app: App): boolean {
  return app.crashed === true || app.state === 'crashed'
}

/** Returns whether an app is running or starting. On some hubs, the crash flag of such an app is still set. */
export const isUp = ({ state }: App) => state === 'running' || state === 'starting'

/**
 * Returns whether an app has crashed, or was stopped by the hub, between two reads. A stop without a new message and
 * without a higher crash count was requested by a person or an automation. A crash flag that stays set is no new crash.
 * @param isDown whether the app has been down since a known crash, whose message and state may arrive later
 */
export function hasCrashed(before: App | undefined, after: App, isDown = true): boolean {
  const isStopped = after.enabled !== false && after.state === 'stopped'
  if (before === undefined) {
    return isCrashed(after) || (isStopped && reasonOf(after.crash_message) === 'unloaded')
  }
  const countedAgain = (after.crash_count ?? 0) > (before.crash_count ?? 0)
  const hasReason = after.crash_message !== null && after.crash_message !== before.crash_message
  const fell = isUp(before) && after.state === 'crashed'
  if (isCrashed(after)) return !isCrashed(before) || countedAgain || (!isDown && (hasReason || fell))
  return isStopped && before.state !== 'stopped' && (countedAgain || hasReason)
}
