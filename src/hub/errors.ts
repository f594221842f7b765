/** The errors of calls to the hub. The code of an error determines what the caller can do next. */
import type { Backoff } from '../base/backoff.ts'

export type HubErrorCode =
  /** 401: the hub does not accept the API key. Retry infrequently: this needs manual intervention. */
  | 'unauthorized'
  /** 403: the API key lacks a permission (`scope`). */
  | 'forbidden'
  /** 403: the hub has no valid licence. Retry infrequently: this needs manual intervention. */
  | 'subscription'
  | 'unknown_app'
  | 'unknown_setting'
  /** This hub has no such operation. */
  | 'unsupported'
  /** An argument cannot be part of a URL; nothing was sent. */
  | 'invalid_argument'
  /** 429: the request was not carried out. Send it again after `retryAfterMs`, if given. */
  | 'rate_limited'
  /** Any other 4xx status. */
  | 'rejected'
  /** A 5xx status. */
  | 'failed'
  /** The response is invalid for the operation: it is not JSON, has the wrong shape, is too large, or is a redirect. */
  | 'nonsense'
  /** Nothing was sent, for example because the hub refused the connection, or the client is already closed. */
  | 'unreachable'
  /** The request was sent, but no conclusive response arrived, so a write may have been carried out. */
  | 'no_answer'

type HubErrorDetails = Partial<Pick<HubError, 'status' | 'scope' | 'retryAfterMs' | 'foreign' | 'cause'>>

export class HubError extends Error {
  override readonly name = 'HubError'
  readonly code: HubErrorCode
  readonly status: number | undefined
  /** The required permission, as written in the hub's documentation: `hub.app`. */
  readonly scope: string | undefined
  readonly retryAfterMs: number | undefined
  /** Whether the response may come from another server, because it is a page or lacks the hub's id. */
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

/** Returns `error` if it is a HubError. @throws any other error, which is a bug that a retry does not fix */
export function asHubError(error: unknown): HubError {
  if (error instanceof HubError) return error
  throw error
}

/** Resolves to the result of a read, or to `undefined` if the read fails with one of these codes. */
export async function unless<T>(codes: readonly HubErrorCode[], read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof HubError && codes.includes(error.code)) return undefined
    throw error
  }
}

/** The delay after errors that need manual intervention. */
const MANUAL_FIX_RETRY_MS = 60_000

export function retryDelay({ code, retryAfterMs }: HubError, backoff: Backoff): number {
  if (code === 'unauthorized' || code === 'forbidden' || code === 'subscription') return MANUAL_FIX_RETRY_MS
  return retryAfterMs ?? backoff.next()
}
