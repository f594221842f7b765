/** Formats numbers and times in the language of the page. */
import { computed } from '@preact/signals'
import { locale } from './terms.ts'

/** A format that is created once for each language of the page. */
function inLocale(make: (language: string) => { format(value: number): string }) {
  const made = computed(() => make(locale.value))
  return (value: number): string => made.value.format(value)
}

const unit = (name: string, maximumFractionDigits = 1, unitDisplay: 'short' | 'long' = 'short') => {
  const options = { style: 'unit', unit: name, maximumFractionDigits, unitDisplay } as const
  return inLocale((language) => new Intl.NumberFormat(language, options))
}
const time = (options: Intl.DateTimeFormatOptions) => inLocale((language) => new Intl.DateTimeFormat(language, options))

/** Compares names, which are independent of the page's language. */
export const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' })

export const formatCount = inLocale((language) => new Intl.NumberFormat(language, { maximumFractionDigits: 1 }))
export const formatPercent = unit('percent')
export const formatCelsius = unit('celsius')

const SIZES = [unit('kilobyte'), unit('megabyte'), unit('gigabyte')]

export function formatBytes(bytes: number): string {
  const step = bytes < 1e6 ? 0 : bytes < 1e9 ? 1 : 2
  return SIZES[step]?.(bytes / 1000 ** (step + 1)) ?? ''
}

const [milliseconds, seconds] = [unit('millisecond', 0), unit('second')]
export const formatDuration = (ms: number): string => (ms < 1000 ? milliseconds(ms) : seconds(ms / 1000))

/** Hours, minutes and seconds. */
export const formatSecond = time({ timeStyle: 'medium' })
/** Hours and minutes. */
export const formatClock = time({ timeStyle: 'short' })
export const formatDay = time({ dateStyle: 'full' })
export const formatMoment = time({ dateStyle: 'medium', timeStyle: 'medium' })
const formatDate = time({ day: 'numeric', month: 'short' })

/** The label of a mark on a time axis, in epoch seconds: a date at midnight and for steps of a day or more. */
export function formatTick(at: number, step: number): string {
  const date = new Date(at * 1000)
  const isDay = step >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)
  return (isDay ? formatDate : formatClock)(at * 1000)
}

/** The date and time; for today, only the time. */
export function formatTime(at: number): string {
  return (new Date(at).toDateString() === new Date().toDateString() ? formatSecond : formatMoment)(at)
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** How long something lasted, in its largest unit. */
export function formatSpan(length: number): string {
  const [name, ms] = UNITS.find(([, one]) => length * 1000 >= one) ?? ['second', 1000]
  return unit(name, 0, 'long')(Math.floor((length * 1000) / ms))
}

const relative = computed(() => new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto', style: 'long' }))

export function formatAgo(at: number, now = Date.now()): string {
  const ago = now - at
  const [name, ms] = UNITS.find(([, one]) => ago >= one) ?? ['minute', Number.POSITIVE_INFINITY]
  return relative.value.format(-Math.floor(ago / ms), name)
}
