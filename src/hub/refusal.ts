/** Converts a response that is not a success into a HubError. */
import { isRecord } from '../base/json.ts'
import { type Answer, header, isUnsigned, parse } from './answer.ts'
import type { HubClientOptions } from './client.ts'
import { asItIs, type Clean, shortText } from './decode.ts'
import { HubError } from './errors.ts'
import type { Operation } from './operations.ts'

const HUB_TEXT_LENGTH = 200
const MAX_RETRY_AFTER_MS = 5 * 60_000

/** The start of a message that ends with the HTTP status. */
export const STAND_IN = 'Another server answered in place of the hub:'

export interface RefusedCall {
  /** The name of an operation, or a description. */
  readonly name: string
  readonly operation: Pick<Operation<never, unknown>, 'method' | 'path' | 'scope' | 'optional'>
  readonly parameters: object
}

export function refusal(
  call: RefusedCall,
  answer: Answer,
  {
    hasApp,
    signs,
    now,
    clean = asItIs,
  }: Pick<HubClientOptions, 'hasApp' | 'clean'> & {
    /** Whether the hub sends its id with its responses to reads. */
    readonly signs: boolean
    /** The current time in epoch milliseconds. */
    readonly now: number
  },
): HubError {
  const { status } = answer
  const { scope } = call.operation
  const detail = hubText(answer, 'error_description', clean) || hubText(answer, 'error', clean)
  const reason = detail === '' ? '' : `, ${detail}`
  if (status === 401) return new HubError('unauthorized', 'The hub does not accept the API key.', { status })
  if (status === 403 && lacksLicence(`${hubText(answer, 'error', clean)} ${detail}`)) {
    return new HubError('subscription', `The hub has no valid licence${reason}.`, { status })
  }
  if (status === 403) {
    const lacks = scope === undefined ? `forbids ${call.name}${reason}` : `reports that the API key lacks ${scope}`
    return new HubError('forbidden', `The hub ${lacks}.`, { status, ...(scope && { scope }) })
  }
  if (status === 404) return notFound(call, isUnsigned(answer, signs), hasApp)
  if (status === 429) {
    const retryAfterMs = retryAfter(answer, now)
    return new HubError('rate_limited', 'The hub asks for fewer requests.', { status, retryAfterMs })
  }
  if (status >= 400 && status < 500) return new HubError('rejected', `The hub refused: ${status}${reason}.`, { status })
  if (status === 500 && bodyOf(answer)['error'] === 'missing_api_method') {
    return new HubError('unsupported', `This hub has no ${call.name}.`, { status, foreign: isUnsigned(answer, signs) })
  }
  if (status >= 500) return new HubError('failed', `The hub failed: ${status}${reason}.`, { status })
  return new HubError('nonsense', `The hub answered with the unexpected status ${status}.`, { status })
}

/**
 * A 404 may mean that the app, its setting or the operation is missing; the path and the known apps determine which. A
 * gateway's response proves nothing about an app.
 */
function notFound({ name, operation, parameters }: RefusedCall, foreign: boolean, hasApp: HubClientOptions['hasApp']) {
  const details = { status: 404, foreign }
  const id = 'id' in parameters ? parameters.id : 'appId' in parameters ? parameters.appId : undefined
  if (foreign && typeof id === 'string') {
    return new HubError('failed', `${STAND_IN} 404.`, details)
  }
  const known = typeof id === 'string' && hasApp(id)
  if (typeof id !== 'string' || (known && operation.optional)) {
    return new HubError('unsupported', `This hub has no ${name}.`, details)
  }
  if (known && operation.path.includes(':name')) {
    return new HubError('unknown_setting', 'The app has no such setting.', details)
  }
  return new HubError('unknown_app', 'The hub knows no such app.', details)
}

/** Returns whether a refusal is about the hub's licence, not about the API key. */
export function lacksLicence(words: string): boolean {
  return /subscription inactive|invalid serial number/i.test(words)
}

/** Returns the hub's own text about a failure, or an empty string. Untrusted text is shortened to one line. */
function hubText(answer: Answer, key: 'error' | 'error_description', clean: Clean): string {
  const value = bodyOf(answer)[key]
  if (typeof value !== 'string') return ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it removes control characters.
  return shortText(value, HUB_TEXT_LENGTH, (text) => clean(text).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' '))
}

/** A larger body of a refusal is not parsed, because each refusal's body is parsed several times. */
const MAX_BODY_BYTES = 64 * 1024

function bodyOf(answer: Answer): Readonly<Record<string, unknown>> {
  const parsed = answer.body.length > MAX_BODY_BYTES ? undefined : parse(answer)
  return isRecord(parsed) ? parsed : {}
}

/**
 * Returns `Retry-After` in milliseconds, from seconds or an HTTP date (RFC 9110, 10.2.3), but at least one second and
 * at most `maxMs` (default: five minutes). `undefined` if the header is missing.
 * @param now used only if the answer has no `Date`, because the clock of the server that sent the date may be wrong
 */
export function retryAfter(answer: Answer, now: number, maxMs = MAX_RETRY_AFTER_MS): number | undefined {
  const value = header(answer, 'retry-after') ?? ''
  const sentAt = Date.parse(header(answer, 'date') ?? '')
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - (Number.isNaN(sentAt) ? now : sentAt)
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 1000), maxMs) : undefined
}
