import { Cron } from 'croner'

/** @throws if the expression or the zone is invalid */
function read(expression: string, timeZone: string | undefined): Cron {
  return new Cron(expression, { mode: '5-part', ...(timeZone !== undefined && { timezone: timeZone }) })
}

/** Returns whether an expression has five valid parts, and matches at least one time. */
export function isCron(expression: string): boolean {
  try {
    return read(expression, 'UTC').nextRun() !== null
  } catch {
    return false
  }
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/**
 * Returns whether the machine's time zone is known. Otherwise, for example if `tz` is misspelt or a rule such as
 * `CET-1CEST,M3.5.0,M10.5.0/3`, Node.js uses UTC. @param tz the variable `TZ`
 */
export function isLocalTimeKnown(tz = 'UTC'): boolean {
  const zone: string | undefined = new Intl.DateTimeFormat().resolvedOptions().timeZone
  const name = tz.startsWith(':') ? tz.slice(1) : tz
  return zone !== undefined && zone !== 'Etc/Unknown' && (zone !== 'UTC' || isTimeZone(name))
}

/** Caches the next match of each expression until the time of this match, because computing it is expensive. */
const known = new Map<string, { readonly cron: Cron; readonly from: number; readonly next: number | undefined }>()
const MAX_KNOWN = 100

/**
 * Returns the next match after `now`, both in epoch milliseconds; `undefined` if there is none. A time that the clocks
 * skip in spring matches right after the change; a time that occurs twice in autumn matches once.
 * @param timeZone default: the machine's time zone
 */
export function nextAfter(expression: string, timeZone: string | undefined, now: number): number | undefined {
  const key = `${expression} ${timeZone}`
  const last = known.get(key)
  if (last !== undefined && now >= last.from && now < (last.next ?? Number.POSITIVE_INFINITY)) return last.next
  const cron = last?.cron ?? read(expression, timeZone)
  const next = cron.nextRun(new Date(now))?.getTime()
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(key, { cron, from: now, next })
  return next
}
