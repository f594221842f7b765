/** Maps the errors of brokers, sockets and mqtt.js to one code, which decides what happens next. */
import type { FailureCode } from './types.ts'

/** Why a connection could not be made or did not last; `detail` is for the log. */
export interface Failure {
  readonly code: FailureCode
  readonly detail: string
}

const CODE_BY_REASON = new Map<number, FailureCode>([
  [1, 'protocol'],
  [132, 'protocol'],
  [4, 'unauthorized'],
  [5, 'unauthorized'],
  [134, 'unauthorized'],
  [135, 'unauthorized'],
  [140, 'unauthorized'],
  [142, 'taken_over'],
])

/** Reason code to what the broker lacks. */
const LACK_BY_REASON = new Map([
  [154, 'retained messages'],
  [155, 'QoS 1'],
  [162, 'subscriptions with wildcards'],
])

/** The broker lacks a part of MQTT that the bridge needs. */
export function lackFailure(lack: string): Failure {
  return { code: 'unsuitable', detail: `it lacks ${lack}, which the bridge needs` }
}

const CONNECT_ERRORS =
  /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ENOTFOUND|EAI_\w+|ETIMEDOUT|EADDRNOTAVAIL|EPIPE|ENOENT|EACCES)$/
const TLS_ERRORS =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/

/** The failure for a reason code of CONNACK or DISCONNECT. */
export function reasonFailure(reason: number, detail: string): Failure {
  const lack = LACK_BY_REASON.get(reason)
  return lack === undefined ? { code: CODE_BY_REASON.get(reason) ?? 'refused', detail } : lackFailure(lack)
}

/** `connected`: whether the broker had accepted the connection, so that it was lost rather than never made. */
export function errorFailure(error: Error, connected: boolean): Failure {
  const code: unknown = 'code' in error ? error.code : undefined
  const detail = describe(error)
  if (typeof code === 'number') return reasonFailure(code, detail)
  if (typeof code === 'string') {
    if (TLS_ERRORS.test(code)) return { code: 'tls', detail }
    if (CONNECT_ERRORS.test(code)) return { code: connected ? 'reset' : 'unreachable', detail }
  }
  if (/connack timeout|Keepalive timeout|handshake has timed out/i.test(error.message))
    return { code: 'timeout', detail }
  if (/Unexpected server response: 40[13]/.test(error.message)) return { code: 'unauthorized', detail }
  if (/Unexpected server response/.test(error.message)) return { code: 'refused', detail }
  return { code: connected ? 'reset' : 'refused', detail }
}

/** Happy Eyeballs wraps one error per address into an AggregateError whose own message is empty. */
function describe(error: Error): string {
  if (error.message !== '') return error.message
  if (error instanceof AggregateError) return error.errors.map(String).join('; ')
  return error.name
}

/** A failure in words for a person: what was found, and what mends it. */
export interface Advice {
  /** One sentence without a full stop. */
  readonly cause: string
  /** Empty if only waiting helps. */
  readonly remedy: string
}

const ADVICE: Partial<Record<FailureCode, Advice>> = {
  unreachable: { cause: 'nothing answers there', remedy: 'check the address and the port, and that the broker runs' },
  unauthorized: {
    cause: 'it refuses the user name or password, next try in a minute',
    remedy: 'check mqtt.username and mqtt.password',
  },
  protocol: { cause: 'it speaks neither MQTT 5 nor the version asked for', remedy: 'check mqtt.protocol' },
  tls: {
    cause: 'its certificate or the TLS settings are not right',
    remedy: 'give mqtt.ca_file for an authority of your own; mqtts:// wants the TLS port, usually 8883',
  },
  taken_over: { cause: 'another client uses the same client id', remedy: 'give each its own mqtt.client_id' },
}

/** What a failure means, with the broker's or the system's own words behind. */
export function adviceOn({ code, detail }: Failure): Advice {
  const { cause, remedy } = ADVICE[code] ?? { cause: '', remedy: '' }
  return { cause: cause === '' ? detail : `${cause}: ${detail}`, remedy }
}
