/** Quiet hours: times of day in which the guardian only watches. */

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60

/** Making one costs a thousand times what asking it does. */
const formats = new Map<string, Intl.DateTimeFormat>()

function minuteOfDay(now: number, timeZone: string | null): number {
  const key = timeZone ?? ''
  const format =
    formats.get(key) ??
    new Intl.DateTimeFormat('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      ...(timeZone !== null && { timeZone }),
    })
  formats.set(key, format)
  return minuteOf(format.format(now))
}

function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}

/**
 * When the quiet hours end that it is now, in epoch milliseconds; `undefined` outside of them.
 * @param hours such as `23:00-07:00`; `null`: there are none
 */
export function quietUntil(hours: string | null, timeZone: string | null, now: number): number | undefined {
  if (hours === null) return undefined
  const [from = 0, to = 0] = hours.split('-').map(minuteOf)
  const time = minuteOfDay(now, timeZone)
  const isQuiet = from <= to ? time >= from && time < to : time >= from || time < to
  if (!isQuiet) return undefined
  const left = (to - time + DAY_MINUTES) % DAY_MINUTES
  return Math.floor(now / MINUTE_MS) * MINUTE_MS + left * MINUTE_MS
}
