/** Formats numbers and times in the language of the page. */
import { computed } from '@preact/signals'
import { locale } from './strings.ts'

/** The formats of the page's language. */
const formats = computed(() => {
  const language = locale.value
  const unit = (name: string, maximumFractionDigits = 1, unitDisplay: 'short' | 'long' = 'short') =>
    new Intl.NumberFormat(language, { style: 'unit', unit: name, maximumFractionDigits, unitDisplay })
  return {
    decimal: new Intl.NumberFormat(language, { maximumFractionDigits: 1 }),
    percent: unit('percent'),
    celsius: unit('celsius'),
    seconds: unit('second'),
    milliseconds: unit('millisecond', 0),
    sizes: ['kilobyte', 'megabyte', 'gigabyte'].map((name) => unit(name)),
    clock: new Intl.DateTimeFormat(language, { timeStyle: 'medium' }),
    minute: new Intl.DateTimeFormat(language, { timeStyle: 'short' }),
    moment: new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }),
    day: new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short' }),
    wholeDay: new Intl.DateTimeFormat(language, { dateStyle: 'full' }),
    span: (name: string) => unit(name, 0, 'long'),
    relative: new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'long' }),
  }
})
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** For names, which are in no language of the page. */
export const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' })

export const formatCount = (value: number): string => formats.value.decimal.format(value)
export const formatPercent = (value: number): string => formats.value.percent.format(value)
export const formatCelsius = (value: number): string => formats.value.celsius.format(value)

export function formatBytes(bytes: number): string {
  const step = bytes < 1e6 ? 0 : bytes < 1e9 ? 1 : 2
  return formats.value.sizes[step]?.format(bytes / 1000 ** (step + 1)) ?? ''
}

export function formatDuration(ms: number): string {
  const { milliseconds, seconds } = formats.value
  return ms < 1000 ? milliseconds.format(ms) : seconds.format(ms / 1000)
}

/** A mark on an axis of time, in epoch seconds: midnight, and each mark of a day or more, as the date. */
export function formatTick(at: number, step: number): string {
  const date = new Date(at * 1000)
  const { day, minute } = formats.value
  const isDay = step >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)
  return (isDay ? day : minute).format(date)
}

/** For times of today, only the time. */
export function formatTime(at: number): string {
  const { clock, moment } = formats.value
  return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : moment.format(at)
}

/** Hours, minutes and seconds. */
export const formatSecond = (at: number): string => formats.value.clock.format(at)
/** Hours and minutes. */
export const formatClock = (at: number): string => formats.value.minute.format(at)
export const formatDay = (at: number): string => formats.value.wholeDay.format(at)
export const formatMoment = (at: number): string => formats.value.moment.format(at)

/** How long something lasted, in its largest unit. */
export function formatSpan(seconds: number): string {
  const [unit, length] = UNITS.find(([, ms]) => seconds * 1000 >= ms) ?? ['second', 1000]
  return formats.value.span(unit).format(Math.floor((seconds * 1000) / length))
}

export function formatAgo(at: number, now = Date.now()): string {
  const ago = now - at
  const { relative } = formats.value
  for (const [unit, length] of UNITS) if (ago >= length) return relative.format(-Math.floor(ago / length), unit)
  return relative.format(0, 'minute')
}
