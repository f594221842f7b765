/**
 * Each part of the page defines its English texts beside its code; a translation is a table with the same keys.
 * `{name}` is a placeholder, and `{count}` selects the plural form. This file contains the texts that many parts share.
 */
import { computed, signal } from '@preact/signals'
import { ERROR_CODES } from '../../../contract/errors.ts'

type Value = string | number
/** The forms of a text by the plural categories of `Intl.PluralRules`; `other` is the default. */
type Plural = { readonly [Category in Intl.LDMLPluralRule]?: string } & { readonly other: string }
export type Text = string | Plural
type Strings = { readonly [key: string]: Text | Strings }

type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type Fill<Name extends string> = (values: { readonly [N in Name]: N extends 'count' ? number : Value }) => string
/** The texts of a language by their full keys, such as `apps.filters.all`. */
export type Texts = Readonly<Record<string, Text>>
/** A text, a function for a text with placeholders, or a group of texts. */
type Filled<T> = T extends string
  ? [NamesIn<T>] extends [never]
    ? string
    : Fill<NamesIn<T>>
  : T extends { readonly other: infer Other extends string }
    ? Fill<NamesIn<Other> | 'count'>
    : { readonly [Key in keyof T]: Filled<T[Key]> }

/** The language of the page and its texts. Missing texts are shown in English. */
export const language = signal<{ readonly code: string; readonly texts: Texts }>({ code: 'en', texts: {} })
const plurals = computed(() => new Intl.PluralRules(language.value.code))

/** The locale for numbers and times: the browser's variant of the language, such as `en-GB`, or the language itself. */
export const locale = computed(() => {
  const { code } = language.value
  const isOf = (tag: string) => tag === code || (tag.startsWith(`${code}-`) && /^[a-z\d-]+$/i.test(tag))
  return navigator.languages.find(isOf) ?? code
})

/** Defines the English texts of a part of the page. @param part the first level of their keys */
export function defineStrings<const T extends Strings>(part: string, english: T): Filled<T>
export function defineStrings(part: string, english: Strings): unknown {
  return group(part, english)
}

function group(part: string, english: Strings): object {
  const texts = {}
  for (const [key, text] of Object.entries(english)) {
    const path = `${part}.${key}`
    Object.defineProperty(texts, key, {
      enumerable: true,
      ...(isText(text) ? reader(path, text) : { value: group(path, text) }),
    })
  }
  return texts
}

function reader(path: string, english: Text): PropertyDescriptor {
  const now = () => language.value.texts[path] ?? english
  const isPlain = typeof english === 'string' && !english.includes('{')
  return isPlain ? { get: now } : { value: (values: Readonly<Record<string, Value>>) => fill(now(), values) }
}

function fill(text: Text, values: Readonly<Record<string, Value>>): string {
  const form = typeof text === 'string' ? text : (text[plurals.value.select(Number(values['count']))] ?? text.other)
  return form.replace(/\{(\w+)\}/g, (_, name: string) => shown(values[name] ?? ''))
}

const shown = (value: Value) => (typeof value === 'number' ? value.toLocaleString(locale.value) : value)

const isText = (text: Text | Strings): text is Text => typeof text === 'string' || typeof text['other'] === 'string'

/** Returns the text for a code, or the code itself if it has no text. */
export function textFor(texts: Readonly<Record<string, string>>, code: string): string {
  return (Object.hasOwn(texts, code) ? texts[code] : undefined) ?? code
}

export const PRODUCT = 'hub2mqtt'
/** The text that is shown in place of a missing value. */
export const NONE = '–'

export const terms = defineStrings('terms', {
  loading: 'Loading…',
  cancel: 'Cancel',
  unknown: 'unknown',
  yes: 'yes',
  no: 'no',
  online: 'online',
  offline: 'offline',
  since: 'Since',
  reason: 'Reason',
  views: { apps: 'Apps', activity: 'Activity', bridge: 'Bridge', log: 'Log' },
  columns: {
    name: 'App',
    version: 'Version',
    state: 'State',
    guardian: 'Guardian',
    enabled: 'Enabled',
    cpu: 'CPU',
    memory: 'Memory',
  },
  apps: { one: '{count} app', other: '{count} apps' },
  hub: 'Hub',
  broker: 'MQTT broker',
  password: 'Password',
  keys: 'Keys',
  pause: 'Pause',
  states: { running: 'Running', starting: 'Starting', stopping: 'Stopping', stopped: 'Stopped', crashed: 'Crashed' },
  events: {
    installed: 'Installed',
    updated: 'Updated',
    removed: 'Removed',
    crashed: 'Crashed',
    recovered: 'Recovered',
    enabled: 'Enabled',
    disabled: 'Disabled',
    started: 'Started',
    stopped: 'Stopped',
    changed: 'Changed',
    restarted: 'Restarted by the guardian',
    retried: 'Tried again by the guardian',
    gave_up: 'Guardian gave up',
    memory_rising: 'Memory is rising',
    updated_by_guard: 'Updated by the guardian',
    update_failed: 'Update failed',
    bad_update: 'Bad update',
    storm: 'Several apps crashed',
    storm_over: 'No more apps crash',
    command_failed: 'Command failed',
  },
  commands: {
    enable: 'Enable',
    disable: 'Disable',
    enabled: 'Enable or disable',
    restart: 'Restart',
    install: 'Update',
    'garbage-collect': 'Free memory',
    uninstall: 'Uninstall',
    autoupdate: 'Automatic updates',
    update: 'Change updates',
    get: 'Read',
    'get-std': 'Send diagnostics report',
    'get-settings': 'Read settings',
    'get-setting': 'Read setting',
    'set-setting': 'Change setting',
    'unset-setting': 'Remove setting',
    'get-locales': 'Read translations',
    'get-crash': 'Read the latest crash',
    'get-history': 'Read usage',
    'get-apps': 'Read apps',
    guard: 'Guardian',
    refresh: 'Refresh',
    speak: 'Speak',
    'log-level': 'Log level',
    ping: 'Ping',
  },
  causes: {
    exception: 'error in the app',
    cpu_limit: 'too much CPU',
    memory_limit: 'too much memory',
    killed: 'killed',
    unloaded: 'unloaded',
    silent: 'no sign of life',
    probe: 'no response',
    schedule: 'schedule',
    devices_unavailable: 'devices unavailable',
    unknown: 'unknown',
  },
  hubReasons: {
    unauthorized: 'it does not accept the API key',
    forbidden: 'the API key lacks a permission',
    subscription: 'it has no valid licence',
    unreachable: 'it cannot be reached',
    rate_limited: 'it asks for fewer requests',
    connecting: 'connecting',
    failed: 'it fails',
    rejected: 'it refuses',
  },
  brokerReasons: {
    unauthorized: 'it refuses the login',
    unreachable: 'it cannot be reached',
    refused: 'it refuses the connection',
    protocol: 'it supports no version of MQTT that hub2mqtt supports',
    tls: 'TLS failed',
    unsuitable: 'it lacks a feature of MQTT that hub2mqtt needs',
    taken_over: 'another client has the same client id',
    timeout: 'it did not answer in time',
    closed: 'it closed the connection',
    reset: 'the connection was lost',
  },
  noConnection: 'There is no connection.',
  noMessage: 'The app crashed without a message.',
  busy: 'A command is running.',
  readAgain: 'Read again',
  onDemand: 'Read from the hub on demand.',
  more: 'and {count} more',
  names: '{names}, and {count} more',
  readOnly: 'You have read-only access.',
  howToWrite: 'To make changes, open the address that hub2mqtt printed when it started, or that hub2mqtt open prints.',
})

/** Lists at most `max` names, and says how many more there are. */
export function listed(all: readonly string[], max: number): string {
  const names = all.slice(0, max).join(', ')
  return all.length > max ? terms.names({ names, count: all.length - max }) : names
}

/** Common messages with at most one placeholder, such as a command's name. */
export const SENTENCES = {
  denied: 'commands.deny names {name}.',
  readOnly: 'commands.read_only is set.',
  off: 'It is off until commands.allow names {name}.',
  guardianOff: 'The guardian is off until guard.watch names an app.',
  deniedSame: 'commands.deny names a command that does the same.',
  lacks: 'The API key lacks {name}.',
} as const

const sentences: Readonly<Record<string, string | Fill<'name'>>> = defineStrings('messages', SENTENCES)
const errors = defineStrings('messages.errors', ERROR_CODES)

/** Translates the frequent messages of hub2mqtt. All other messages are shown in English. */
export function inLanguage(message: string): string {
  for (const [key, english] of Object.entries(SENTENCES)) {
    const [before = '', after = ''] = english.split('{name}')
    const name = message.slice(before.length, message.length - after.length)
    const text = sentences[key]
    if (text === undefined || message !== before + name + after || name.includes(' ')) continue
    return typeof text === 'string' ? text : text({ name })
  }
  const [code] = Object.entries(ERROR_CODES).find(([, text]) => text === message) ?? []
  return code === undefined ? message : textFor(errors, code)
}

/** Returns a function that formats numbers, with a new formatter after each change of the page's language. */
function inLocale(make: (language: string) => { format(value: number): string }) {
  const made = computed(() => make(locale.value))
  return (value: number): string => made.value.format(value)
}

const unit = (name: string, maximumFractionDigits = 1, unitDisplay: 'short' | 'long' = 'short') => {
  const options = { style: 'unit', unit: name, maximumFractionDigits, unitDisplay } as const
  return inLocale((language) => new Intl.NumberFormat(language, options))
}
const time = (options: Intl.DateTimeFormatOptions) => inLocale((language) => new Intl.DateTimeFormat(language, options))

/** Sorts names by the browser's locale, so that their order does not depend on the language of the page. */
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

export const formatSecond = time({ timeStyle: 'medium' })
export const formatClock = time({ timeStyle: 'short' })
export const formatDay = time({ dateStyle: 'full' })
export const formatMoment = time({ dateStyle: 'medium', timeStyle: 'medium' })
const formatDate = time({ day: 'numeric', month: 'short' })

/** Formats `at`, in epoch seconds: as a date if it is midnight or the step is at least a day, otherwise as a time. */
export function formatTick(at: number, step: number): string {
  const date = new Date(at * 1000)
  const isDay = step >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)
  return (isDay ? formatDate : formatClock)(at * 1000)
}

/** Formats a time, in epoch milliseconds. Omits the date if it is today. */
export function formatTime(at: number): string {
  return (new Date(at).toDateString() === new Date().toDateString() ? formatSecond : formatMoment)(at)
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** Formats a duration in seconds, using only its largest unit. */
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
