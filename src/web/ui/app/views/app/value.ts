import * as v from 'valibot'
import { readJson } from '../../../../../base/read-json.ts'
import { MAX_JSON_DEPTH, MAX_PAYLOAD_BYTES, parseExact } from '../../../../../contract/payload.ts'
import { defineStrings } from '../../terms.ts'

const text = defineStrings('value', {
  number: 'Enter a number, such as 21.5.',
  unwritable: 'A number is too large, or values are nested too deeply.',
  rounded: 'A number has too many digits: shorten it, or enter it as a text.',
  json: 'This is not valid JSON.',
  empty: 'Enter a value.',
  long: 'The value is too long: a setting can have at most {size} KiB.',
})

export const KINDS = ['boolean', 'number', 'text', 'json'] as const
export type Kind = (typeof KINDS)[number]

export function kindOf(value: unknown): Kind {
  if (typeof value === 'string') return 'text'
  if (typeof value === 'number') return 'number'
  return typeof value === 'boolean' ? 'boolean' : 'json'
}

/** Maximum length of JSON on one line, in characters. */
const LINE = 80

/** Returns a value as text, for display and for editing. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const line = JSON.stringify(value)
  return line.length <= LINE ? line : JSON.stringify(value, null, 2)
}

export const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

const SECRET =
  /pass|pwd|kennwort|wachtwoord|secret|geheim|token|bearer|key|auth|credential|cookie|session|private|\bpin(code)?\b|\bpsk\b/i
/** Matches a login in an address, such as `https://user:password@host`. */
const LOGIN = /:\/\/[^/?#\s@:]*:[^/?#\s@]*@/
/** The text with which the bridge replaces its own secrets. */
const MASK = '***'

/** Whether a setting may be secret, judged by its name, the names in its value, and any login in an address. */
export function maySecret(name: string, value: unknown, depth = 0): boolean {
  if (SECRET.test(name) || depth > MAX_JSON_DEPTH) return true
  if (typeof value === 'string') {
    if (LOGIN.test(value)) return true
    const inside = /^\s*[[{]/.test(value) ? readJson(v.unknown(), value) : undefined
    return typeof inside === 'object' && maySecret('', inside, depth + 1)
  }
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, child]) => maySecret(Array.isArray(value) ? '' : key, child, depth + 1))
}
/** Returns `true` if the bridge has masked a part of the value, so that the page does not have the whole value. */
export const isCut = (value: unknown) => JSON.stringify(value)?.includes(MASK) === true

type Typed<T> = { readonly ok: true; readonly value: T } | ReturnType<typeof wrong>

const wrong = (message: string) => ({ ok: false, message }) as const

/** Restores `\r\n` if all lines of the previous value ended with `\r\n`, because text fields do not keep it. */
function withLineEnds(typed: string, before: unknown): string {
  const lines = typeof before === 'string' ? before.split('\r\n') : []
  const hadCrlf = lines.length > 1 && !lines.some((line) => line.includes('\n') || line.includes('\r'))
  return hadCrlf ? typed.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n') : typed
}

/** Converts typed text to a value of the type `kind`. @param before the previous value */
export function readTyped(kind: Kind, typed: string, before: unknown): Typed<unknown> {
  if (kind === 'text') return { ok: true, value: withLineEnds(typed, before) }
  const trimmed = typed.trim()
  if (trimmed === '') return wrong(text.empty)
  if (kind === 'boolean') return { ok: true, value: trimmed === 'true' }
  const value = readJson(v.unknown(), trimmed)
  if (kind === 'number' && typeof value !== 'number') return wrong(text.number)
  if (value === undefined) return wrong(text.json)
  if (!isWritable(value)) return wrong(text.unwritable)
  return isExact(trimmed) ? { ok: true, value } : wrong(text.rounded)
}

/** Returns `false` if the JSON contains a number with more digits than a command can preserve. */
function isExact(json: string): boolean {
  try {
    parseExact(json)
    return true
  } catch {
    return false
  }
}

/** Returns whether JSON can represent a value. A number out of range is parsed as Infinity, which JSON lacks. */
function isWritable(value: unknown, depth = 0): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_JSON_DEPTH && Object.values(value).every((inner) => isWritable(inner, depth + 1))
}

/** Returns the payload that sets a setting with any name, or an error if the payload is too long. */
export function payloadFor(name: string, value: unknown): Typed<object> {
  const payload = { name, value }
  const isLong = new TextEncoder().encode(JSON.stringify(payload)).length > MAX_PAYLOAD_BYTES
  return isLong ? wrong(text.long({ size: MAX_PAYLOAD_BYTES / 1024 })) : { ok: true, value: payload }
}
