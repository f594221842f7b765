import { isRecord } from './json.ts'

export interface Advice {
  /** Describes what went wrong, as one sentence without a full stop. */
  readonly cause: string
  /** What the user can do; empty if the user can only wait. */
  readonly remedy: string
  /** Names and addresses in `cause` and `remedy` that do not come from the configuration. */
  readonly names?: readonly string[]
}

export const advice = (cause: string, remedy = ''): Advice => ({ cause, remedy })

/** Returns an error code such as `ECONNREFUSED`, or an empty string. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Error codes of Node.js for certificates: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
export const WRONG_NAME = /^ERR_TLS_CERT_ALTNAME_INVALID$/
export const OUTDATED = /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/
/** Limits the listed names, because a certificate may have thousands of names of any length. */
const MAX_NAMES = 8
const MAX_NAME = 253

/** Returns the names in a certificate, followed by its IP addresses, such as `broker.lan` and `192.168.1.10`. */
export function namesOfCertificate(error: unknown): readonly string[] {
  const names = isRecord(error) && isRecord(error['cert']) ? error['cert']['subjectaltname'] : undefined
  const entries = typeof names === 'string' ? names.split(', ') : []
  const after = (kind: string) => entries.flatMap((entry) => (entry.startsWith(kind) ? [entry.slice(kind.length)] : []))
  return [...after('DNS:'), ...after('IP Address:')].filter((name) => name.length <= MAX_NAME).slice(0, MAX_NAMES)
}
