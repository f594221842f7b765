/** Formats numbers and times in the viewer's locale. */

const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const percent = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'percent', maximumFractionDigits: 1 })
const celsius = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'celsius', maximumFractionDigits: 1 })
const seconds = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'second', maximumFractionDigits: 1 })
const milliseconds = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'millisecond', maximumFractionDigits: 0 })
const sizes = (['kilobyte', 'megabyte', 'gigabyte'] as const).map(
  (unit) => new Intl.NumberFormat(undefined, { style: 'unit', unit, maximumFractionDigits: 1 }),
)
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
const shortClock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const minute = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const wholeDay = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'long' })
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

export const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' })

export const formatCount = (value: number): string => decimal.format(value)
export const formatPercent = (value: number): string => percent.format(value)
export const formatCelsius = (value: number): string => celsius.format(value)

export function formatBytes(bytes: number): string {
  const step = bytes < 1e6 ? 0 : bytes < 1e9 ? 1 : 2
  return sizes[step]?.format(bytes / 1000 ** (step + 1)) ?? ''
}

export function formatDuration(ms: number): string {
  return ms < 1000 ? milliseconds.format(ms) : seconds.format(ms / 1000)
}

/** A mark on an axis of time, in epoch seconds: midnight, and each mark of a day or more, as the date. */
export function formatTick(at: number, step: number): string {
  const date = new Date(at * 1000)
  const isDay = step >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)
  return (isDay ? day : minute).format(date)
}

/** For times of today, only the time. */
export function formatTime(at: number): string {
  return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : moment.format(at)
}

/** Hours, minutes and seconds. */
export const formatSecond = (at: number): string => clock.format(at)
/** Hours and minutes. */
export const formatClock = (at: number): string => shortClock.format(at)
export const formatDay = (at: number): string => wholeDay.format(at)
export const formatMoment = (at: number): string => moment.format(at)

/** How long something lasted, in its largest unit. */
export function formatSpan(seconds: number): string {
  const [unit, length] = UNITS.find(([, ms]) => seconds * 1000 >= ms) ?? ['second', 1000]
  const format = new Intl.NumberFormat(undefined, {
    style: 'unit',
    unit,
    unitDisplay: 'long',
    maximumFractionDigits: 0,
  })
  return format.format(Math.floor((seconds * 1000) / length))
}

export function formatAgo(at: number, now = Date.now()): string {
  const ago = now - at
  for (const [unit, length] of UNITS) if (ago >= length) return relative.format(-Math.floor(ago / length), unit)
  return relative.format(0, 'minute')
}
