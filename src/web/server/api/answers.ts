/** What the API answers besides what the page shares with it. */
import * as v from 'valibot'
import { ERROR_CODES, type ErrorCode } from '../../../contract/errors.ts'
import { FAILURE, SUCCESS } from '../../../contract/schemas.ts'

export const STATE = v.record(v.string(), v.string())

/** The HTTP status of a command that was refused or failed. */
export const STATUS_OF: Readonly<Record<ErrorCode, number>> = {
  invalid_payload: 400,
  unknown_command: 404,
  unknown_hub: 404,
  unknown_app: 404,
  unknown_setting: 404,
  not_allowed: 403,
  retained: 400,
  expired: 408,
  busy: 429,
  unauthorized: 502,
  forbidden: 403,
  unsupported: 501,
  hub_unreachable: 503,
  hub_rejected: 502,
  hub_failed: 502,
  rate_limited: 429,
  too_large: 413,
  outcome_unknown: 504,
}

/** Status → the codes that it stands for. */
function failures(): Record<number, { readonly doc: string; readonly schema: v.GenericSchema }> {
  const byStatus = Map.groupBy(Object.keys(ERROR_CODES), (code) => STATUS_OF[code as ErrorCode])
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      { doc: codes.map((code) => `\`${code}\``).join(', '), schema: FAILURE },
    ]),
  )
}

export const COMMAND_ANSWERS = {
  ...failures(),
  200: { doc: 'Done.', schema: SUCCESS },
}
