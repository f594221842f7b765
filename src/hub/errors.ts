/** Every way in which a call to the hub can fail, as one type with a code that says what the caller may do next. */
import type { Backoff } from '../base/backoff.ts'

export type HubErrorCode =
  /** 401: the hub does not know the key. Retry slowly, a person must act. */
  | 'unauthorized'
  /** 403: the key lacks a permission (`scope`). */
  | 'forbidden'
  /** 403: the hub has no valid licence. Retry slowly, a person must act. */
  | 'subscription'
  | 'unknown_app'
  | 'unknown_setting'
  /** This hub has no such operation. */
  | 'unsupported'
  /** An argument cannot be written into a URL; nothing was sent. */
  | 'invalid_argument'
  /** 429: surely not carried out. To be sent again after `retryAfterMs`, if the hub named one. */
  | 'rate_limited'
  /** Any other 4xx. */
  | 'rejected'
  /** 5xx. */
  | 'failed'
  /** An answer that is not what the operation promises: not JSON, wrong shape, too big, a redirect. */
  | 'nonsense'
  /** Nothing was sent: refused, no route, name not resolved, no connection in time, client closed. */
  | 'unreachable'
  /** The request went out, and no whole answer came back or none that says whether it is done: a write may have happened. */
  | 'no_answer'

interface HubErrorDetails {
  /** HTTP status, if there was one. */
  readonly status?: number
  /** The permission that the operation wants, as the hub's documentation writes it: `hub.app`. */
  readonly scope?: string
  readonly retryAfterMs?: number | undefined
  /** The answer may be of something on the way: a page, or without the identity that the hub shows with each answer. */
  readonly foreign?: boolean
  readonly cause?: unknown
}

export class HubError extends Error {
  override readonly name = 'HubError'
  readonly code: HubErrorCode
  readonly status: number | undefined
  readonly scope: string | undefined
  readonly retryAfterMs: number | undefined
  readonly foreign: boolean

  constructor(code: HubErrorCode, message: string, details: HubErrorDetails = {}) {
    super(message, { cause: details.cause })
    this.code = code
    this.status = details.status
    this.scope = details.scope
    this.retryAfterMs = details.retryAfterMs
    this.foreign = details.foreign ?? false
  }
}

/** @throws anything that is no HubError: a bug in hub2mqtt; retrying does not help */
export function asHubError(error: unknown): HubError {
  if (error instanceof HubError) return error
  throw error
}

/** What is read; `undefined` if that fails in one of these ways. */
export async function unless<T>(codes: readonly HubErrorCode[], read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof HubError && codes.includes(error.code)) return undefined
    throw error
  }
}

/** Errors that only a person can fix are retried slowly. */
const PERSON_RETRY_MS = 60_000

/** How long to wait before trying again what failed, in milliseconds. */
export function retryDelay({ code, retryAfterMs }: HubError, backoff: Backoff): number {
  if (code === 'unauthorized' || code === 'forbidden' || code === 'subscription') return PERSON_RETRY_MS
  return retryAfterMs ?? backoff.next()
}
