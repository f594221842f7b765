/** Converts the bytes of a command to validated input. Each kind of payload in the contract has one function here. */
import * as v from 'valibot'
import { amountIn, amountPattern, DURATION_UNITS } from '../base/durations.ts'
import { endOfString, type Json } from '../base/json.ts'
import { CommandError } from './errors.ts'

export const MAX_PAYLOAD_BYTES = 64 * 1024
export const MAX_JSON_DEPTH = 32

/** An ISO 8601 time with an offset; `timeOf` checks that the day exists. */
const TIME =
  /^\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$/

/** Keys that any JSON object payload may have in addition to its own keys. */
export const ENVELOPE = v.object({
  // `JSON.parse` returns Infinity for a number out of range, and an answer cannot echo Infinity.
  transaction: v.optional(v.union([v.pipe(v.string(), v.maxLength(256)), v.pipe(v.number(), v.finite())])),
  expires_at: v.optional(
    v.union([
      v.pipe(v.string(), v.regex(TIME, 'expected a time such as 2026-11-21T09:00:00Z, its offset as Z or +hh:mm.')),
      v.pipe(v.number(), v.finite()),
    ]),
  ),
})

interface Envelope {
  /** The value that the answer repeats; `null` if the payload has no transaction. */
  readonly transaction: string | number | null
  /** The time in epoch milliseconds after which the command must not be executed; `null` if there is no limit. */
  readonly expiresAt: number | null
}

const BARE: Envelope = { transaction: null, expiresAt: null }
const NOTHING = { envelope: BARE, rest: {} }

/** A payload whose envelope has been read; `input()` checks the rest and throws CommandError `invalid_payload`. */
export interface Reading<T> extends Envelope {
  readonly input: () => T
}

export interface PayloadKind<T> {
  readonly read: (text: string) => Reading<T>
  /** The schema of the payload without the envelope. */
  readonly schema: v.GenericSchema
  /** Whether the payload may be a JSON object with an envelope. */
  readonly enveloped: boolean
  /** Set if an empty payload is a valid value, which is the empty string. */
  readonly emptyIsValue?: true
}

/** A JSON object that may have an envelope, mapped by `meaning`. An empty payload is read as `{}`. */
export function enveloped<S extends v.GenericSchema, T>(
  schema: S,
  meaning: (value: v.InferOutput<S>) => T,
): PayloadKind<T> {
  return {
    schema,
    enveloped: true,
    read(text) {
      // A Home Assistant button sends `PRESS`, because it cannot send an empty payload.
      const plain = withoutMark(text)
      const { envelope, rest } = plain === '' || plain === 'PRESS' ? NOTHING : openEnvelope(parseJson(plain))
      return { ...envelope, input: () => meaning(check(schema, rest)) }
    },
  }
}

/** A JSON object with only these keys and the keys of the envelope. */
export const object = <E extends v.ObjectEntries>(entries: E) => enveloped(v.strictObject(entries), (value) => value)

/** Like `object`, with all keys optional but at least one present. */
export const someOf = <E extends v.ObjectEntries>(entries: E) =>
  enveloped(
    v.pipe(v.strictObject(entries), v.minEntries(1, `Expected ${Object.keys(entries).join(' or ')}.`)),
    (value) => value,
  )

/** For nested JSON objects: valibot alone would accept an array. */
export const noArray = v.check((value: unknown) => !Array.isArray(value), 'expected Object.')

/** A nested JSON object with only these keys. */
export function inner<E extends v.ObjectEntries>(entries: E) {
  return v.pipe(v.unknown(), noArray, v.strictObject(entries))
}

/** Plain text without an envelope, mapped by `meaning`. */
function bare<T>(schema: v.GenericSchema, meaning: (text: string) => T): PayloadKind<T> {
  return { schema, enveloped: false, read: (text) => ({ ...BARE, input: () => meaning(text) }) }
}

/** One of a few words, such as `ON` and `OFF`, each mapped to a value. */
export function word<const T>(words: readonly (readonly [string, T])[]): PayloadKind<T> {
  const known = new Map(words)
  return bare(v.picklist([...known.keys()]), (text) => {
    const value = known.get(withoutMark(text))
    if (value === undefined) throw invalid(`Expected ${[...known.keys()].join(', ')}.`)
    return value
  })
}

/** A plain payload (a word or other text), or an object. */
export function either<T, U>(plain: PayloadKind<T>, other: PayloadKind<U>): PayloadKind<T | U> {
  return {
    schema: v.union([plain.schema, other.schema]),
    enveloped: other.enveloped,
    read: (text) => (text.trimStart().startsWith('{') ? other.read(text) : plain.read(text)),
  }
}

const YEAR_MS = 365 * DURATION_UNITS.d

export const duration = v.pipe(
  v.string(),
  v.regex(amountPattern(DURATION_UNITS, 9), 'expected a duration such as 30s, 15m or 2h.'),
)

/** Converts a duration to milliseconds. @throws CommandError `invalid_payload` if under a second or over a year */
export function durationMs(key: string, written: string): number {
  const ms = amountIn(DURATION_UNITS, written)
  if (!(ms >= 1000 && ms <= YEAR_MS)) throw invalid(`${key}: expected a duration from 1s to a year.`)
  return ms
}

/** Any JSON value, or other text, which becomes a string. There is no envelope, because any key may be data. */
export const anyValue: PayloadKind<Json> = {
  ...bare(v.any(), (text) => {
    const value = parseExact(withoutMark(text))
    return value === undefined ? text : value
  }),
  emptyIsValue: true,
}

const SPEECH = { text: v.pipe(v.string(), v.nonEmpty()) }

export const speech: PayloadKind<{ text: string }> = either(
  bare(SPEECH.text, (text) => check(v.strictObject(SPEECH), { text: text.trim() })),
  object(SPEECH),
)

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const BYTE_ORDER_MARK = '\uFEFF'

/** Removes the byte order mark with which JSON and words may begin. In other text, the mark is content. */
function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
}

/** Decodes UTF-8; keeps a byte order mark. @throws CommandError `invalid_payload` if too long or not UTF-8 */
export function decodeText(payload: Uint8Array): string {
  if (payload.length > MAX_PAYLOAD_BYTES) throw invalid(`Expected at most ${MAX_PAYLOAD_BYTES} bytes.`)
  try {
    return decoder.decode(payload)
  } catch {
    throw invalid('Expected UTF-8 text.')
  }
}

/**
 * Reads the transaction of an otherwise invalid payload, so that the requester can match the refusal. The payload may
 * be nested too deeply, and its other numbers may be rounded.
 */
export function peekTransaction(payload: Uint8Array): string | number | null {
  const revive: typeof asSent = (key, value, context) => (key === 'transaction' ? asSent(key, value, context) : value)
  try {
    const value: unknown = JSON.parse(withoutMark(decodeText(payload)), revive)
    return check(v.object({ transaction: ENVELOPE.entries.transaction }), value).transaction ?? null
  } catch {
    return null
  }
}

function openEnvelope(value: Json): { envelope: Envelope; rest: Json } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('Expected a JSON object.')
  const { transaction, expires_at, ...rest } = value
  const read = check(ENVELOPE, { transaction, expires_at })
  const expiresAt = typeof read.expires_at === 'string' ? timeOf(read.expires_at) : read.expires_at
  return { envelope: { transaction: read.transaction ?? null, expiresAt: expiresAt ?? null }, rest }
}

/** Rejects days such as February 30, which Date reads as a day in March. */
function timeOf(text: string): number {
  const day = text.slice(0, text.indexOf('T'))
  if (new Date(day).toJSON()?.startsWith(day)) return Date.parse(text)
  throw invalid('expires_at: there is no such day.')
}

function check<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  throw invalid(explain(result.issues[0]))
}

/** Names the field and the expected type, but never the value, which may be a secret. */
function explain(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue)
  const field = path === null ? '' : `${path.slice(0, 64)}: `
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${field}there is no such key.`
  if (issue.type === 'strict_object' && issue.received === 'undefined') return `${field}this key is required.`
  if (['check', 'regex', 'min_entries'].includes(issue.type)) return `${field}${issue.message}`
  if (issue.kind !== 'schema')
    return `${field}${issue.type.replaceAll('_', ' ')} expected${issue.expected === null ? '' : ` (${issue.expected})`}.`
  return `${field}expected ${issue.expected}.`
}

function invalid(message: string): CommandError {
  return new CommandError('invalid_payload', message)
}

function parseJson(text: string): Json {
  const value = parseExact(text)
  if (value === undefined) throw invalid('Expected JSON.')
  return value
}

/** Digits or an exponent that may exceed the precision or range of a number. */
const LARGE_NUMBER = /\d{16}|\de/i
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i

/**
 * Rejects JSON that is nested too deeply, or has integers that would be rounded. Fractions are rounded to the nearest
 * double. Returns `undefined` if the text is not JSON.
 * @throws CommandError `invalid_payload`
 */
export function parseExact(text: string): Json | undefined {
  if (depth(text) > MAX_JSON_DEPTH) throw invalid(`Expected JSON of at most ${MAX_JSON_DEPTH} levels.`)
  try {
    return JSON.parse(text, LARGE_NUMBER.test(text) ? asSent : undefined)
  } catch (error) {
    if (error instanceof CommandError) throw error
    return undefined
  }
}

function asSent(key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  if (typeof value !== 'number') return value
  if (Number.isFinite(value) && !isRounded(source, value)) return value
  const field = key === '' ? '' : `${key.slice(0, 64)}: `
  throw invalid(`${field}expected a number that JSON parsers do not change; send a text.`)
}

/** Returns whether `source` is an integer that differs both from its parsed value and from that value's JSON. */
function isRounded(source: string, value: number): boolean {
  const written = integerOf(source, value)
  if (written === undefined || source === String(value)) return false
  return written !== integerOf(String(value), value) && written !== BigInt(Math.abs(value))
}

/** Returns the integer without its sign; `undefined` if the text is a fraction. `5.0` and `1.5e1` are integers. */
function integerOf(text: string, value: number): bigint | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? []
  const shift = Number(exponent) - fraction.length
  const digits = whole + fraction
  // Zero may have a huge exponent; the exponent of any other finite integer is small.
  if (value === 0 || digits === '') return undefined
  if (shift >= 0) return BigInt(digits) * 10n ** BigInt(shift)
  return Number(digits.slice(shift)) === 0 ? BigInt(digits.slice(0, shift)) : undefined
}

/** Returns how deeply brackets nest outside of strings. Call this before parsing, because the parser is recursive. */
function depth(text: string): number {
  let open = 0
  let deepest = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at)
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++open)
    else if (char === '}' || char === ']') open--
  }
  return deepest
}
