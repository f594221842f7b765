/** Maps the errors of brokers, sockets and mqtt.js to one code, which decides what happens next. */
import { namesOfCertificate, OUTDATED, WRONG_NAME } from '../base/certificates.ts'
import type { FailureCode } from './types.ts'

/** Why a connection could not be made or did not last; `detail` is for the log. */
export interface Failure {
  readonly code: FailureCode
  readonly detail: string
  /** The system's own code, such as `ECONNREFUSED`. */
  readonly cause?: string
  /** Of a certificate for another name: what it is for. */
  readonly names?: readonly string[]
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
    if (code === WRONG_NAME) return { code: 'tls', detail, cause: code, names: namesOfCertificate(error) }
    if (TLS_ERRORS.test(code)) return { code: 'tls', detail, cause: code }
    if (CONNECT_ERRORS.test(code)) return { code: connected ? 'reset' : 'unreachable', detail, cause: code }
  }
  if (/connack timeout|Keepalive timeout|handshake has timed out/i.test(error.message))
    return { code: 'timeout', detail }
  if (/Unexpected server response: 40[13]/.test(error.message)) return { code: 'unauthorized', detail }
  if (/Unexpected server response/.test(error.message)) return { code: 'refused', detail }
  return { code: connected ? 'reset' : 'refused', detail }
}

/** Happy Eyeballs wraps one error per address into an AggregateError whose own message is empty. */
function describe(error: Error): string {
  // OpenSSL's words, without its numbers and places.
  if ('reason' in error && typeof error.reason === 'string') return error.reason
  // Node.js appends its advice on --use-system-ca, also where `ca` rules that out.
  if (error.message !== '') return error.message.split('; if the root CA')[0] ?? ''
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

const PORTS = 'check the address and the port: mostly 1883 for mqtt://, 8883 for mqtts://'

const ADVICE: Partial<Record<FailureCode, Advice>> = {
  unreachable: { cause: 'nothing answers there', remedy: 'check the address and the port, and that the broker runs' },
  timeout: { cause: 'it takes the connection and does not answer', remedy: PORTS },
  unauthorized: {
    cause: 'it refuses the user name or password',
    remedy: 'check mqtt.username and mqtt.password',
  },
  protocol: { cause: 'it speaks neither MQTT 5 nor the version asked for', remedy: 'check mqtt.protocol' },
  refused: { cause: '', remedy: PORTS },
  tls: { cause: 'its certificate or the TLS settings are not right', remedy: 'check mqtt.ca_file and the port' },
  taken_over: { cause: 'another client uses the same client id', remedy: 'give each its own mqtt.client_id' },
}

const UNKNOWN_NAME = { cause: 'its name is not known', remedy: 'check the spelling, or use its IP address' }
const UNTRUSTED = {
  cause: 'its certificate is of no known authority',
  remedy:
    'give mqtt.ca_file the certificate of that authority, or a self-signed one itself; without mqtt.ca_file, NODE_OPTIONS=--use-system-ca trusts what this system trusts',
}
const NOT_VALID_NOW = {
  cause: 'its certificate is not valid now',
  remedy: 'renew the certificate, or set the clock of this machine',
}
const CLIENT_CERTIFICATE = {
  cause: 'it refuses the connection for its client certificate, or for lack of one',
  remedy: 'give mqtt.cert_file and mqtt.key_file what the broker accepts',
}

/** More than the code tells, by the system's own. */
const BY_CAUSE: Readonly<Record<string, Advice>> = {
  ENOTFOUND: UNKNOWN_NAME,
  EAI_AGAIN: UNKNOWN_NAME,
  ECONNRESET: { cause: 'it ends the connection at once', remedy: PORTS },
  EPIPE: { cause: 'it ends the connection at once', remedy: PORTS },
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ...Object.fromEntries([...OUTDATED].map((code) => [code, NOT_VALID_NOW])),
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: CLIENT_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: CLIENT_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: CLIENT_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: CLIENT_CERTIFICATE,
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: {
    cause: 'the client certificate and the key do not belong together',
    remedy: 'give mqtt.cert_file and mqtt.key_file of one pair',
  },
}

/** What a failure means, with the broker's or the system's own words behind. */
export function adviceOn({ code, detail, cause: system = '', names }: Failure): Advice {
  if (names !== undefined) return wrongName(names)
  const { cause, remedy } = (Object.hasOwn(BY_CAUSE, system) ? BY_CAUSE[system] : ADVICE[code]) ?? NO_ADVICE
  return { cause: cause === '' ? detail : `${cause}: ${detail}`, remedy }
}

const NO_ADVICE: Advice = { cause: '', remedy: '' }

function wrongName(names: readonly string[]): Advice {
  // A name with a wildcard is no address.
  const name = names.find((one) => !one.includes('*'))
  const such = name === undefined ? '' : `, such as ${name}`
  if (names.length === 0)
    return { cause: 'its certificate names no host', remedy: 'make one with the broker’s name in it' }
  return {
    cause: `its certificate is for other names: ${names.join(', ')}`,
    remedy: `use a name of the certificate in mqtt.url${such}, or make one with the broker’s address in it`,
  }
}
