/** Bytes of a command → checked input. Each kind of payload that the contract knows is one function here. */
import * as v from 'valibot'
import { DURATION_UNITS } from '../base/durations.ts'
import { endOfString, type Json } from '../base/json.ts'
import { CommandError } from './errors.ts'

export const MAX_PAYLOAD_BYTES = 64 * 1024
export const MAX_JSON_DEPTH = 32

/** A time of ISO 8601 with its offset; `timeOf` checks whether the day exists. */
const TIME =
  /^\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$/

/** Keys that any JSON-object payload may have, apart from its own. */
export const ENVELOPE = v.object({
  // Beyond the range of numbers JSON reads Infinity, which no answer could echo.
  transaction: v.optional(v.union([v.pipe(v.string(), v.maxLength(256)), v.pipe(v.number(), v.finite())])),
  expires_at: v.optional(
    v.union([
      v.pipe(v.string(), v.regex(TIME, 'expected a time such as 2026-11-21T09:00:00Z, its offset as Z or +hh:mm.')),
      v.pipe(v.number(), v.finite()),
    ]),
  ),
})

interface Envelope {
  /** Echoed in the answer; `null` without one. */
  readonly transaction: string | number | null
  /** Epoch milliseconds, after which the command must not be executed. */
  readonly expiresAt: number | null
}

const BARE: Envelope = { transaction: null, expiresAt: null }
const NOTHING = { envelope: BARE, rest: {} }

/** A payload read as far as its envelope; `input()` checks the rest and throws CommandError `invalid_payload`. */
export interface Reading<T> extends Envelope {
  readonly input: () => T
}

/** One kind of payload: how it is read, and what the documentation says of it. */
export interface PayloadKind<T> {
  readonly read: (text: string) => Reading<T>
  /** What may be sent, the envelope left out. */
  readonly schema: v.GenericSchema
  /** Whether a JSON object with an envelope may be sent. */
  readonly enveloped: boolean
  /** Whether no payload is a value too: the empty text. */
  readonly emptyIsValue?: true
}

/** A JSON object that may have an envelope, and what its value stands for; no payload at all is the empty object. */
export function enveloped<S extends v.GenericSchema, T>(
  schema: S,
  meaning: (value: v.InferOutput<S>) => T,
): PayloadKind<T> {
  return {
    schema,
    enveloped: true,
    read(text) {
      // A button of Home Assistant cannot send nothing; `PRESS` is its word for it.
      const plain = withoutMark(text)
      const { envelope, rest } = plain === '' || plain === 'PRESS' ? NOTHING : openEnvelope(parseJson(plain))
      return { ...envelope, input: () => meaning(check(schema, rest)) }
    },
  }
}

/** A JSON object with these keys and the envelope's, nothing else. */
export const object = <E extends v.ObjectEntries>(entries: E) => enveloped(v.strictObject(entries), (value) => value)

/** Like `object`, with no key required but one of them. */
export const someOf = <E extends v.ObjectEntries>(entries: E) =>
  enveloped(
    v.pipe(v.strictObject(entries), v.minEntries(1, `Expected ${Object.keys(entries).join(' or ')}.`)),
    (value) => value,
  )

/** A JSON object inside of one; valibot by itself takes an array for an object. */
export function inner<E extends v.ObjectEntries>(entries: E) {
  const noArray = v.check((value: unknown) => !Array.isArray(value), 'expected Object.')
  return v.pipe(v.unknown(), noArray, v.strictObject(entries))
}

/** A text by itself, without an envelope, and what it stands for. */
function bare<T>(schema: v.GenericSchema, meaning: (text: string) => T): PayloadKind<T> {
  return { schema, enveloped: false, read: (text) => ({ ...BARE, input: () => meaning(text) }) }
}

/** One of a few words, as a switch or a select sends them, and what each stands for. */
export function word<const T>(words: readonly (readonly [string, T])[]): PayloadKind<T> {
  const known = new Map(words)
  return bare(v.picklist([...known.keys()]), (text) => {
    const value = known.get(withoutMark(text))
    if (value === undefined) throw invalid(`Expected ${[...known.keys()].join(', ')}.`)
    return value
  })
}

/** A word or a text, or an object: whichever is sent. */
export function either<T, U>(plain: PayloadKind<T>, other: PayloadKind<U>): PayloadKind<T | U> {
  return {
    schema: v.union([plain.schema, other.schema]),
    enveloped: other.enveloped,
    read: (text) => (text.trimStart().startsWith('{') ? other.read(text) : plain.read(text)),
  }
}

const YEAR_MS = 365 * 24 * DURATION_UNITS.h

/** `30s`, `15m`, `2h`; `durationMs` says how long that is. */
export const duration = v.pipe(
  v.string(),
  v.regex(/^\d{1,9}(?:h|m|s|ms)$/, 'expected a duration such as 30s, 15m or 2h.'),
)

/** A duration in milliseconds. @throws CommandError `invalid_payload` for one under a second or over a year */
export function durationMs(key: string, written: string): number {
  const [, digits, unit = ''] = /^(\d+)(\D+)$/.exec(written) ?? []
  const [, factor = 0] = Object.entries(DURATION_UNITS).find(([suffix]) => suffix === unit) ?? []
  const ms = Number(digits) * factor
  if (ms < 1000 || ms > YEAR_MS) throw invalid(`${key}: expected a duration from 1s to a year.`)
  return ms
}

/** Any JSON value; text that is not JSON is a string, kept exactly. It has no envelope, as the value may be anything. */
export const anyValue: PayloadKind<Json> = {
  ...bare(v.any(), (text) => {
    const value = parseExact(withoutMark(text))
    return value === undefined ? text : value
  }),
  emptyIsValue: true,
}

const SPOKEN = { text: v.pipe(v.string(), v.nonEmpty()) }

/** A text, or an object with it under `text`. */
export const spoken: PayloadKind<{ text: string }> = either(
  bare(SPOKEN.text, (text) => check(v.strictObject(SPOKEN), { text: text.trim() })),
  object(SPOKEN),
)

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const BYTE_ORDER_MARK = '\uFEFF'

/** JSON and words may begin with a byte order mark; of a raw text it is a part. */
function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
}

/** A leading byte order mark is kept. @throws CommandError `invalid_payload` for bytes that are too many or no UTF-8 */
export function decodeText(payload: Uint8Array): string {
  if (payload.length > MAX_PAYLOAD_BYTES) throw invalid(`Expected at most ${MAX_PAYLOAD_BYTES} bytes.`)
  try {
    return decoder.decode(payload)
  } catch {
    throw invalid('Expected UTF-8 text.')
  }
}

/** The transaction of a payload that may be nonsense otherwise, so that the refusal finds its requester. */
export function peekTransaction(payload: Uint8Array): string | number | null {
  try {
    return openEnvelope(parseJson(withoutMark(decodeText(payload)))).envelope.transaction
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

/** Date reads the 30th of February as a day in March. */
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

/** Names the field and what was expected, never the value: it may be a secret. */
function explain(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue)
  const field = path === null ? '' : `${path.slice(0, 64)}: `
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${field}there is no such key.`
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

/** Digits or an exponent that may be more than a number holds. */
const LARGE_NUMBER = /\d{16}|\de/i
const DIGITS = /^-?\d+$/

/**
 * JSON whose integers arrive as they were sent: one that would be rounded, or be infinite, is refused, and so is what
 * nests too deep. Fractions are rounded to the nearest double. `undefined`: it is no JSON.
 */
function parseExact(text: string): Json | undefined {
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
  const isRounded = DIGITS.test(source) && source !== String(value) && BigInt(source) !== BigInt(value)
  if (Number.isFinite(value) && !isRounded) return value
  const field = key === '' ? '' : `${key.slice(0, 64)}: `
  throw invalid(`${field}expected a number that JSON readers do not change; send a text.`)
}

/** How deep brackets nest outside of strings: counted before parsing, as the parser would recurse. */
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
