/** Reads the answer to a request, and decides whether it comes from the hub or from something on the way to it. */
import { type Json, parseJson } from '../base/json.ts'
import type { Method } from './operations.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** For a write: the body was too large to be read and is empty here; the status still counts. */
  readonly isCut?: true
}

/** Whether a status says that a write was done, or that a read has the whole answer: 206 is a part of a list. */
export function isSuccess(method: Method, status: number): boolean {
  return method === 'GET' ? status === 200 || status === 204 : status >= 200 && status < 300
}

const UTF8 = new TextDecoder()

/** The body as text, without a byte order mark. */
export function textOf({ body }: Answer): string {
  return UTF8.decode(body)
}

/** The body as JSON; `undefined` for anything else, and for what holds too many values. */
export const parse = (answer: Answer): Json | undefined => parseJson(textOf(answer))

/** No header of a hub that is read here is longer. */
const HEADER_LENGTH = 200

/** A header of an answer; `null` if it is missing, empty, repeated or of an insane length. */
export function header(answer: Answer, name: string): string | null {
  const value = answer.headers[name]
  return typeof value === 'string' && value !== '' && value.length <= HEADER_LENGTH ? value : null
}

/** Whether an answer is an HTML page that does not say that it is the hub's: a gateway's or a portal's. */
export function isPage(answer: Answer): boolean {
  if (header(answer, 'x-homey-id') !== null) return false
  const type = header(answer, 'content-type') ?? ''
  return /^(text\/html|application\/xhtml)/i.test(type) || /^\s*</.test(answer.body.toString('utf8', 0, 100))
}

/** Whether an answer to a request with the key lacks the identity of a hub that `signs` such answers, or is a page. */
export function isUnsigned(answer: Answer, signs: boolean): boolean {
  return isPage(answer) || (signs && header(answer, 'x-homey-id') === null)
}

/** What a hub answers to a ping that does not say there which one it is. */
const GREETINGS: ReadonlySet<unknown> = new Set([true, null, 'pong'])

/**
 * Whether an answer to a ping is a hub's: it says which one it is, or it is JSON that only answers to a ping are like. What
 * answers any path, such as a portal, says that with an object, a list, a text or nothing.
 */
export function isGreeting(answer: Answer): boolean {
  if (answer.status !== 200) return false
  if (header(answer, 'x-homey-id') !== null) return true
  const type = header(answer, 'content-type') ?? ''
  return /^application\/json *(?:;|$)/i.test(type) && GREETINGS.has(parse(answer))
}

/**
 * Whether an answer to a request with the key is the hub's own. A hub that `signs` such answers signs each of them; of
 * another one JSON and nothing count, and text if `takesText`.
 */
export function isHubs(answer: Answer, signs: boolean, takesText = false): boolean {
  if (header(answer, 'x-homey-id') !== null) return true
  if (isUnsigned(answer, signs) || answer.isCut) return false
  return takesText || textOf(answer).trim() === '' || parse(answer) !== undefined
}
