/** Reads responses, and detects responses that another server sent in place of the hub. */
import { type Json, parseJson } from '../base/json.ts'
import type { Method } from './operations.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** Set for a write whose response body was too large. `body` is empty, but the status is still valid. */
  readonly isCut?: true
}

/** Returns whether a status means success. For a read, 206 does not, because the body is only part of a list. */
export function isSuccess(method: Method, status: number): boolean {
  return method === 'GET' ? status === 200 || status === 204 : status >= 200 && status < 300
}

const UTF8 = new TextDecoder()

/** Returns the body as a string, without a byte order mark. */
export function textOf({ body }: Answer): string {
  return UTF8.decode(body)
}

/** Parses the body. Returns `undefined` if the body is not JSON or has too many values. */
export const parse = (answer: Answer): Json | undefined => parseJson(textOf(answer))

/** A longer header is treated as missing. Hubs send only shorter headers. */
const HEADER_LENGTH = 200

/** Returns a header's value; `null` if the header is missing, empty, repeated or too long. */
export function header(answer: Answer, name: string): string | null {
  const raw = answer.headers[name]
  // undici keeps the spaces after a value, which are not a part of it.
  const value = typeof raw === 'string' ? raw.trim() : ''
  return value !== '' && value.length <= HEADER_LENGTH ? value : null
}

/** Returns whether a response is an HTML page without the hub's id. A gateway or a captive portal sends such pages. */
export function isPage(answer: Answer): boolean {
  if (header(answer, 'x-homey-id') !== null) return false
  const type = header(answer, 'content-type') ?? ''
  return /^(text\/html|application\/xhtml)/i.test(type) || /^\s*</.test(answer.body.toString('utf8', 0, 100))
}

/** Returns whether another server may have sent a response. @param signs whether the hub sends its id with responses */
export function isUnsigned(answer: Answer, signs: boolean): boolean {
  return isPage(answer) || (signs && header(answer, 'x-homey-id') === null)
}

/** The responses to a ping from hubs that send no id. Captive portals respond with other JSON, text or nothing. */
const GREETINGS: ReadonlySet<unknown> = new Set([true, null, 'pong'])

export function isGreeting(answer: Answer): boolean {
  if (answer.status !== 200) return false
  if (header(answer, 'x-homey-id') !== null) return true
  const type = header(answer, 'content-type') ?? ''
  return /^application\/json *(?:;|$)/i.test(type) && GREETINGS.has(parse(answer))
}

/**
 * Returns whether the hub itself sent the response to a request with the API key. If the hub sends its id with its
 * responses (`signs`), the id is required. Other hubs must send JSON, an empty body or, with `acceptsText`, any text.
 */
export function isHubs(answer: Answer, signs: boolean, acceptsText = false): boolean {
  if (header(answer, 'x-homey-id') !== null) return true
  if (isUnsigned(answer, signs) || answer.isCut) return false
  return acceptsText || textOf(answer).trim() === '' || parse(answer) !== undefined
}
