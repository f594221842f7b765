/** Whether a change is a crash, and why the app died, as far as the hub says so. */

import type { App } from '../hub/app.ts'
import { MAX_GUARD_MESSAGE, type Reason } from './guard.ts'

/** From the surest text to the least: a stack may quote any of the others. */
const TEXTS: readonly (readonly [RegExp, Reason])[] = [
  [/cpu warning limit|cpu limit/i, 'cpu_limit'],
  [/too many memwarns|memory (?:warning )?limit|heap out of memory|out of memory/i, 'memory_limit'],
  [/unloaded by homey core|unloaded by the hub/i, 'unloaded'],
  [/^[ \t]*at .+[:)]|^[ \t]*File ".+", line \d|^Traceback /m, 'exception'],
  [/\bSIGKILL\b|\bkilled\b/i, 'killed'],
  [/\b[A-Z]\w*(?:Error|Exception)\b|^Error\b|\bunhandled\b|\buncaught\b/im, 'exception'],
  [/\bunloaded\b/i, 'unloaded'],
]

export function reasonOf(message: string | null): Reason {
  return TEXTS.find(([text]) => text.test(message ?? ''))?.[1] ?? 'unknown'
}

/** On one line, short enough to be kept many times over. */
export function headOf(message: string | null): string | null {
  if (message === null) return null
  const line = message.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  // No half of a character at the end.
  return line.slice(0, MAX_GUARD_MESSAGE).replace(/[\ud800-\udbff]$/, '')
}

/** Whether the hub says that the app has crashed and does not run. */
export function isCrashed(app: App): boolean {
  return app.crashed === true || app.state === 'crashed'
}

/** Whether the hub says that it runs or is on its way to; some leave the flag of a crash on it. */
export const isUp = ({ state }: App) => state === 'running' || state === 'starting'

/**
 * Whether an app has crashed between two looks, or was stopped by the hub. A stop counts only with a sign of that: a new
 * message, or one crash more. Without one, a person or an automation has stopped it. A flag that stays is no new crash.
 * @param isDown whether it is down since a known crash: the message and the state may come later than the flag
 */
export function hasCrashed(before: App | undefined, after: App, isDown = true): boolean {
  const isStopped = after.enabled !== false && after.state === 'stopped'
  if (before === undefined) {
    return isCrashed(after) || (isStopped && reasonOf(after.crash_message) === 'unloaded')
  }
  const countedAgain = (after.crash_count ?? 0) > (before.crash_count ?? 0)
  const saysWhy = after.crash_message !== null && after.crash_message !== before.crash_message
  const fell = isUp(before) && after.state === 'crashed'
  if (isCrashed(after)) return !isCrashed(before) || countedAgain || (!isDown && (saysWhy || fell))
  return isStopped && before.state !== 'stopped' && (countedAgain || saysWhy)
}
