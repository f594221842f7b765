import type { Json } from '../base/json.ts'
import { HubError, type HubErrorCode } from '../hub/errors.ts'

export const ERROR_CODES = {
  invalid_payload: 'The payload is not valid for the command.',
  unknown_command: 'There is no such command.',
  unknown_hub: 'No hub of that name is configured.',
  unknown_app: 'The hub has no such app.',
  unknown_setting: 'The app has no such setting.',
  not_allowed: 'The configuration does not allow the command.',
  retained: 'The message was retained; it was cleared and not executed.',
  expired: 'The command came too late, waited too long, or its connection was lost.',
  busy: 'Too many commands wait for this app already.',
  unauthorized: 'The hub does not accept the API key.',
  forbidden: 'The API key lacks a permission.',
  unsupported: 'This hub has no such operation.',
  hub_unreachable: 'The hub is offline or did not answer.',
  hub_rejected: 'The hub, or a gateway in front of it, refused the request (another 4xx).',
  hub_failed:
    'The hub failed (5xx), reported an error, answered a read with invalid data, or did not do what was requested; or a gateway answered 404.',
  rate_limited: 'The hub limited requests (429) until the command expired; nothing was done.',
  too_large: 'The answer exceeds the limits of the broker.',
  outcome_unknown: 'The command was sent, but the hub did not confirm or refuse it: it may have been carried out.',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text)
}

export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly code: ErrorCode
  /** HTTP status of the hub's response, if there was one. */
  readonly status: number | null
  readonly data: Json | undefined

  constructor(
    code: ErrorCode,
    message: string = ERROR_CODES[code],
    details: { status?: number | undefined; data?: Json | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause })
    this.code = code
    this.status = details.status ?? null
    this.data = details.data
  }
}

/** Hub error codes that have a different name in the contract. */
const FROM_HUB: Readonly<Record<Exclude<HubErrorCode, ErrorCode>, ErrorCode>> = {
  subscription: 'hub_rejected',
  invalid_argument: 'invalid_payload',
  rejected: 'hub_rejected',
  failed: 'hub_failed',
  nonsense: 'hub_failed',
  unreachable: 'hub_unreachable',
  no_answer: 'outcome_unknown',
}

/** Converts a hub error. An unanswered read becomes `hub_unreachable`, because only writes have an unknown outcome. */
export function fromHubError(error: HubError, write: boolean): CommandError {
  const answered = isErrorCode(error.code) ? error.code : FROM_HUB[error.code]
  const code = error.code === 'no_answer' && !write ? 'hub_unreachable' : answered
  const message = error.code === 'forbidden' && error.scope ? `The API key lacks ${error.scope}.` : error.message
  return new CommandError(code, message, { status: error.status, cause: error })
}

/** Adds the names of the steps that have succeeded (`done`) to the failure of a later step. */
export function afterSteps(error: unknown, done: readonly string[]): unknown {
  const failure = error instanceof HubError ? fromHubError(error, true) : error
  if (!(failure instanceof CommandError) || done.length === 0) return failure
  const { code, message, status } = failure
  return new CommandError(code, message, { status: status ?? undefined, data: { done: [...done] }, cause: failure })
}
