/** Reads responses, and decides whether each comes from the hub or from another server on the way to it. */
import { type Json, parseJson } from '../base/json.ts'
import type { Method } from './operations.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** Set for a write whose response body was too large: `body` is empty, but the status still counts. */
  readonly isCut?: true
}

/** Whether a status means that a write succeeded, or that a read is complete: a 206 contains only part of a list. */
export function isSuccess(method: Method, status: number): boolean {
  return method === 'GET' ? status === 200 || status === 204 : status >= 200 && status < 300
}

const UTF8 = new TextDecoder()

/** Returns the body as text, without a byte order mark. */
export function textOf({ body }: Answer): string {
  return UTF8.decode(body)
}

/** Returns the body as JSON; `undefined` if it is not JSON or has too many values. */
export const parse = (answer: Answer): Json | undefined => parseJson(textOf(answer))

/** The maximum length of a header value; the headers that hubs send are shorter. */
const HEADER_LENGTH = 200

/** Returns a response header; `null` if it is missing, empty, repeated or too long. */
export function header(answer: Answer, name: string): string | null {
  const value = answer.headers[name]
  return typeof value === 'string' && value !== '' && value.length <= HEADER_LENGTH ? value : null
}

/** Whether a response is an HTML page without the hub's id, such as one from a gateway or captive portal. */
export function isPage(answer: Answer): boolean {
  if (header(answer, 'x-homey-id') !== null) return false
  const type = header(answer, 'content-type') ?? ''
  return /^(text\/html|application\/xhtml)/i.test(type) || /^\s*</.test(answer.body.toString('utf8', 0, 100))
}

/** Whether a response to a request with the API key is a page, or lacks the id of a hub that `signs` its responses. */
export function isUnsigned(answer: Answer, signs: boolean): boolean {
  return isPage(answer) || (signs && header(answer, 'x-homey-id') === null)
}

/** Possible ping responses of a hub that does not send its id. */
const GREETINGS: ReadonlySet<unknown> = new Set([true, null, 'pong'])

/**
 * Whether a ping response comes from a hub: it has the hub's id, or its JSON is one of `GREETINGS`. A server that
 * answers any path, such as a captive portal, sends an object, an array, text or nothing.
 */
export function isGreeting(answer: Answer): boolean {
  if (answer.status !== 200) return false
  if (header(answer, 'x-homey-id') !== null) return true
  const type = header(answer, 'content-type') ?? ''
  return /^application\/json *(?:;|$)/i.test(type) && GREETINGS.has(parse(answer))
}

/**
 * Whether a response to a request with the API key is the hub's own. A hub that `signs` responses signs all of them;
 * from other hubs, JSON and empty bodies are accepted, and text if `takesText`.
 */
export function isHubs(answer: Answer, signs: boolean, takesText = false): boolean {
  if (header(answer, 'x-homey-id') !== null) return true
  if (isUnsigned(answer, signs) || answer.isCut) return false
  return takesText || textOf(answer).trim() === '' || parse(answer) !== undefined
}
