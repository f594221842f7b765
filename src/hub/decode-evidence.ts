/** Decodes a hub's reports about itself, its devices, flows and logs. Missing or invalid values become `null`. */
import { setImmediate as turn } from 'node:timers/promises'
import { endOfString, isRecord, parseJson } from '../base/json.ts'
import { MAX_APPS } from './app.ts'
import { asItIs, JSON_LEVELS, shortText } from './decode.ts'
import { HubError } from './errors.ts'

/** How many devices or flows use an app, and how many of them do not work (`null` if the hub does not report it). */
interface Tally {
  readonly count: number
  readonly bad: number | null
}

type Tallies = ReadonlyMap<string, Tally>

/** A log of measurements. */
export interface InsightLog {
  /** The source of the values, such as `homey:app:com.example`. */
  readonly owner: string
  readonly id: string
  /** A unit such as `%`, if the hub reports it. */
  readonly units?: string
}

/** The time of a value in epoch milliseconds, and the value. */
export type InsightEntry = readonly [at: number, value: number]

const MAX_ENTRIES = 20_000
const MAX_CARDS = 2_000
const ID_LENGTH = 200
const VERSION_LENGTH = 100
const YEAR_SECONDS = 366 * 86_400

const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const list = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : []

const numberIn = (value: unknown, min: number, max: number, digits = 0) =>
  typeof value === 'number' && value >= min && value <= max ? Number(value.toFixed(digits)) : null

const bytes = (value: unknown) => numberIn(value, 0, Number.MAX_SAFE_INTEGER)

/** Returns whether any flag with this prefix is set; `null` if there is no such flag. */
function flagged(info: Record<string, unknown>, prefix: string): boolean | null {
  const flags = Object.entries(info).filter(([name, flag]) => name.startsWith(prefix) && typeof flag === 'boolean')
  return flags.length === 0 ? null : flags.some(([, flag]) => flag)
}

export function decodeInfo(value: unknown) {
  const info = record(value)
  const { loadavg, cpus, totalmem, freemem, uptime, videoCoreTemperature } = info
  const [one, five, fifteen] = list(loadavg).map((load) => numberIn(load, 0, 1e6, 2))
  return {
    /** Averages over the last one, five and fifteen minutes. */
    load: [one ?? null, five ?? null, fifteen ?? null],
    cpus: numberIn(Array.isArray(cpus) ? cpus.length : cpus, 1, 1024),
    memory: { total: bytes(totalmem), free: bytes(freemem) },
    temperatureCelsius: numberIn(videoCoreTemperature, -50, 200, 1),
    undervoltage: flagged(info, 'videoCoreUndervoltage'),
    throttled: flagged(info, 'videoCoreThrottle'),
    uptimeSeconds: numberIn(uptime, 0, 20 * YEAR_SECONDS),
  }
}

export function decodeSpace(value: unknown) {
  const { total, free } = record(value)
  return { total: bytes(total), free: bytes(free) }
}

/** Converts a time to ISO 8601. Hubs send a string, seconds, milliseconds, or an object that contains one of these. */
export function decodeTime(value: unknown): string | null {
  if (isRecord(value)) return decodeTime(['value', 'date', 'createdAt'].map((key) => value[key]).find(isTime))
  const at = isTime(value) ? timeOf(value) : Number.NaN
  return at >= Date.UTC(2000) && at < Date.UTC(2200) ? new Date(at).toISOString() : null
}

const isTime = (value: unknown) => (typeof value === 'string' && value.length < 64) || typeof value === 'number'

/** Returns epoch milliseconds. Small numbers are interpreted as seconds. */
function timeOf(value: unknown): number {
  const at = typeof value === 'string' ? Date.parse(value) : Number(value)
  return Math.abs(at) < 1e11 ? at * 1000 : at
}

/** Returns the version of the next firmware update; `null` if there is none. */
export function decodeUpdates(value: unknown, _: unknown = {}, clean = asItIs): string | null {
  const versions = [value, ...list(value)].map((update) => record(update)['version'])
  const version = versions.find((one): one is string => typeof one === 'string' && one !== '')
  return version === undefined ? null : shortText(version, VERSION_LENGTH, clean)
}

/** Returns the app's id in a URI `homey:app:<id>`, which may have more parts. */
function appIn(uri: unknown): string | undefined {
  if (typeof uri !== 'string' || !uri.startsWith('homey:app:')) return undefined
  const id = uri.slice('homey:app:'.length).split(':', 1)[0] ?? ''
  return id !== '' && id.length <= ID_LENGTH && id.isWellFormed() ? id : undefined
}

/**
 * Counts the records of each app. @param appsOf returns the apps to which a record belongs
 * @param isBad returns whether a device or flow does not work; `undefined` if the hub does not report that
 */
async function tally(
  text: unknown,
  appsOf: (record: Record<string, unknown>) => Iterable<string>,
  isBad: (record: Record<string, unknown>) => unknown,
): Promise<Tallies> {
  const tallies = new Map<string, Tally>()
  await eachRecord(String(text), (one) => {
    const bad = isBad(one)
    for (const app of appsOf(one)) {
      const { count, bad: before } = tallies.get(app) ?? { count: 0, bad: 0 }
      if (count === 0 && tallies.size === MAX_APPS) continue
      const known = typeof bad === 'boolean' ? before : null
      tallies.set(app, { count: count + 1, bad: known === null ? null : known + Number(bad) })
    }
  })
  return tallies
}

export function decodeDevices(text: unknown): Promise<Tallies> {
  const appsOf = ({ driverId, driverUri }: Record<string, unknown>) => {
    const app = appIn(driverId) ?? appIn(driverUri)
    return app === undefined ? [] : [app]
  }
  return tally(text, appsOf, ({ available }) => (typeof available === 'boolean' ? !available : undefined))
}

/** Counts a flow once for every app whose cards it contains. */
export function decodeFlows(text: unknown): Promise<Tallies> {
  const appsOf = ({ trigger, conditions, actions, cards }: Record<string, unknown>) => {
    const all = [trigger, ...[conditions, actions, cards].flatMap((some) => list(some).slice(0, MAX_CARDS))]
    const named = all.map(record).map(({ uri, ownerUri, id }) => appIn(uri) ?? appIn(ownerUri) ?? appIn(id))
    return new Set(named.filter((app) => app !== undefined))
  }
  return tally(text, appsOf, ({ broken }) => broken)
}

export async function decodeLogs(text: unknown, _: unknown = {}, clean = asItIs): Promise<readonly InsightLog[]> {
  const logs: InsightLog[] = []
  await eachRecord(String(text), ({ id, uri, ownerUri, units }) => {
    const owner = ownerUri ?? uri
    const isKnown = [owner, id].every((one) => typeof one === 'string' && one !== '' && one === clean(one))
    if (isKnown)
      logs.push({
        owner: String(owner).slice(0, 500),
        id: String(id).slice(0, 500),
        ...(typeof units === 'string' && { units: units.slice(0, 20) }),
      })
  })
  return logs
}

/** Returns the entries, oldest first. Skips entries without a time or value. */
export function decodeEntries(value: unknown): readonly InsightEntry[] {
  const { values, entries } = record(value)
  const found = list(Array.isArray(value) ? value : (values ?? entries)).slice(-MAX_ENTRIES)
  const read = found.map((entry): InsightEntry => {
    const { t, v, time = t, value = v } = record(entry)
    const [at, figure] = Array.isArray(entry) ? entry : [time, value]
    return [isTime(at) ? timeOf(at) : Number.NaN, typeof figure === 'number' ? figure : Number.NaN]
  })
  return read.filter((entry) => entry.every(Number.isFinite)).sort(([one], [other]) => one - other)
}

/** Maximum number of devices, flows or logs in a response. No home has that many. */
const MAX_RECORDS = 20_000
/** Maximum length of a record, which limits how long parsing blocks the event loop. Devices and flows are smaller. */
const MAX_RECORD_LENGTH = 512 * 1024
const TOO_MUCH = 'too many records, or one that is too large.'
/** Number of characters after which parsing yields to the event loop. */
const AT_ONCE = 128 * 1024

/** Parses one record at a time, so that a long response does not block the event loop. @throws HubError `nonsense` */
async function eachRecord(text: string, take: (record: Record<string, unknown>) => void): Promise<void> {
  let [records, turnedAt] = [0, 0]
  for (const { start, end } of recordsIn(text)) {
    if (start !== undefined) {
      records += 1
      if (records > MAX_RECORDS || end - start > MAX_RECORD_LENGTH) throw nonsense(TOO_MUCH)
      const record = parseJson(text.slice(start, end))
      if (record === undefined) throw nonsense('something that is not JSON.')
      if (isRecord(record)) take(record)
    }
    if (end - turnedAt < AT_ONCE) continue
    turnedAt = end
    await turn()
  }
  // An empty list is `{}` or `[]`; anything else may be an error that was sent with a success status.
  if (records === 0 && !EMPTY.has(text.slice(0, 100).trim())) throw nonsense('a list without records.')
}

const EMPTY: ReadonlySet<string> = new Set(['{}', '[]'])

const [QUOTE, COMMA] = ['"', ','].map((char) => char.charCodeAt(0))

function endOfText(text: string, start: number): number {
  const end = endOfString(text, start, Math.min(text.length, start + MAX_RECORD_LENGTH))
  if (end < text.length && text.charCodeAt(end) !== QUOTE) throw nonsense(TOO_MUCH)
  return end
}

/** Yields the positions of top-level records, and positions without `start` so that the caller can pause. */
function* recordsIn(text: string): Generator<{ readonly start?: number; readonly end: number }> {
  if (!['[', '{'].includes(text.trimStart().charAt(0))) throw nonsense('something that is not a list.')
  let [depth, start] = [0, 0]
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) at = endOfText(text, at)
    else if (isOpening(char)) {
      depth += 1
      if (depth === 2) start = at
      if (depth > JSON_LEVELS) throw nonsense(`JSON of more than ${JSON_LEVELS} levels.`)
    } else if (isClosing(char)) {
      depth -= 1
      if (depth === 1) yield { start, end: at + 1 }
    } else if (char === COMMA) yield { end: at }
  }
  if (depth !== 0) throw nonsense('an incomplete list.')
}

/** The bit that distinguishes `{` from `[`, and `}` from `]`. */
const CURLY = 0x20
const isOpening = (char: number) => (char & ~CURLY) === 0x5b
const isClosing = (char: number) => (char & ~CURLY) === 0x5d

const nonsense = (what: string) => new HubError('nonsense', `The hub answered with ${what}`)
