/** Maps each error of a broker, a socket or mqtt.js to a code, which determines whether and when to retry. */
import { type Advice, advice, namesOfCertificate, OUTDATED, systemCode, WRONG_NAME } from '../base/failures.ts'
import type { FailureCode } from './types.ts'

/** `detail` is for the log. */
export interface Failure {
  readonly code: FailureCode
  readonly detail: string
  /** The system's error code, such as `ECONNREFUSED`. */
  readonly cause?: string
  /** The names in the broker's certificate, if it was issued for a different name. */
  readonly names?: readonly string[]
}

const CODES_BY_REASON: readonly (readonly [FailureCode, readonly number[]])[] = [
  ['protocol', [1, 132]],
  ['unauthorized', [4, 5, 134, 135, 140]],
  ['taken_over', [142]],
]

/** Maps a reason code to the feature that the broker lacks. */
const LACK_BY_REASON = new Map([
  [154, 'retained messages'],
  [155, 'QoS 1'],
  [162, 'subscriptions with wildcards'],
])

export function lackFailure(lack: string): Failure {
  return { code: 'unsuitable', detail: `it lacks ${lack}, which the bridge needs` }
}

const CONNECT_ERRORS =
  /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ENOTFOUND|EAI_\w+|ETIMEDOUT|EADDRNOTAVAIL|EPIPE|ENOENT|EACCES)$/
const TLS_ERRORS =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/

/** Returns the failure for a reason code of CONNACK or DISCONNECT. */
export function reasonFailure(reason: number, detail: string): Failure {
  const lack = LACK_BY_REASON.get(reason)
  const [code = 'refused'] = CODES_BY_REASON.find(([, reasons]) => reasons.includes(reason)) ?? []
  return lack === undefined ? { code, detail } : lackFailure(lack)
}

/** @param connected whether the broker had accepted the connection */
export function errorFailure(thrown: unknown, connected: boolean): Failure {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const detail = describe(error)
  if ('code' in error && typeof error.code === 'number') return reasonFailure(error.code, detail)
  const cause = systemCode(error)
  if (WRONG_NAME.test(cause)) return { code: 'tls', detail, cause, names: namesOfCertificate(error) }
  if (TLS_ERRORS.test(cause)) return { code: 'tls', detail, cause }
  if (CONNECT_ERRORS.test(cause)) return { code: connected ? 'reset' : 'unreachable', detail, cause }
  const { message } = error
  if (/connack timeout|Keepalive timeout|handshake has timed out/i.test(message)) return { code: 'timeout', detail }
  if (/Unexpected server response: 40[13]/.test(message)) return { code: 'unauthorized', detail }
  if (/Unexpected server response/.test(message)) return { code: 'refused', detail }
  return { code: connected ? 'reset' : 'refused', detail }
}

/** Returns an error's message. Happy Eyeballs wraps one error per address into an AggregateError without a message. */
function describe(error: Error): string {
  // For an OpenSSL error, `reason` is the text without numbers and source locations.
  if ('reason' in error && typeof error.reason === 'string') return error.reason
  // Socket errors contain the same text between the numbers and the locations.
  const [, reason] = /:SSL routines:[^:]*:([^:]+):/.exec(error.message) ?? []
  if (reason !== undefined) return reason
  // Node.js appends advice to use --use-system-ca, even if `ca` is set.
  if (error.message !== '') return error.message.split('; if the root CA')[0] ?? ''
  if (error instanceof AggregateError) return error.errors.map(String).join('; ')
  return error.name
}

const PORTS = 'check the address and the port: usually 1883 for mqtt://, 8883 for mqtts://'

const ADVICE: Partial<Record<FailureCode, Advice>> = {
  unreachable: advice('nothing answers there', 'check the address and the port, and that the broker is running'),
  timeout: advice('it accepts the connection but does not answer', PORTS),
  unauthorized: advice('it refuses the user name or password', 'check mqtt.username and mqtt.password'),
  protocol: advice('it supports neither MQTT 5 nor the configured version', 'check mqtt.protocol'),
  refused: advice('', PORTS),
  tls: advice('its certificate or the TLS settings are wrong', 'check mqtt.ca_file and the port'),
  taken_over: advice('another client uses the same client id', 'give each client its own mqtt.client_id'),
}

const BY_CAUSE: readonly (readonly [RegExp, Advice])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, advice('its name cannot be resolved', 'check the spelling, or use its IP address')],
  [/^(ECONNRESET|EPIPE)$/, advice('it ends the connection immediately', PORTS)],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?))$/,
    advice(
      'its certificate is not from a trusted authority',
      'set mqtt.ca_file to the certificate of that authority, or to a self-signed certificate itself; without mqtt.ca_file, NODE_OPTIONS=--use-system-ca trusts the authorities of this system',
    ),
  ],
  [OUTDATED, advice('its certificate has expired or is not valid yet', 'renew it, or set the clock of this machine')],
  [
    // OpenSSL names some alerts after SSL 3 or, in newer versions, after SSL/TLS.
    /^ERR_SSL_(TLSV13_ALERT_CERTIFICATE_REQUIRED|(SSLV3|SSL\/TLS)_ALERT_(BAD_CERTIFICATE|CERTIFICATE_EXPIRED)|TLSV1_ALERT_UNKNOWN_CA)$/,
    advice(
      'it refuses the client certificate, or requires one',
      'set mqtt.cert_file and mqtt.key_file to a pair that the broker accepts',
    ),
  ],
  [
    /^ERR_OSSL_X509_KEY_VALUES_MISMATCH$/,
    advice(
      'the client certificate and the key do not belong together',
      'set mqtt.cert_file and mqtt.key_file to the files of one pair',
    ),
  ],
]

export function adviceOn({ code, detail, cause: system = '', names }: Failure): Advice {
  if (names !== undefined) return wrongName(names)
  // A broker that has accepted a connection has the right address and port.
  const [, match] = code === 'reset' ? [] : (BY_CAUSE.find(([causes]) => causes.test(system)) ?? [])
  const { cause, remedy } = match ?? ADVICE[code] ?? advice('')
  return advice(cause === '' ? detail : `${cause}: ${detail}`, remedy)
}

function wrongName(names: readonly string[]): Advice {
  // A name with a wildcard cannot be used as an address.
  const name = names.find((one) => !one.includes('*'))
  const such = name === undefined ? '' : `, such as ${name}`
  if (names.length === 0) return advice('its certificate names no host', 'create one that contains the broker’s name')
  return advice(
    `its certificate is for other names: ${names.join(', ')}`,
    `use a name of the certificate in mqtt.url${such}, or create one that contains the broker’s address`,
  )
}
