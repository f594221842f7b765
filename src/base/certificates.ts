/** Reads what Node.js says of a certificate that it refuses: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
import { isRecord } from './json.ts'

/** The code of a certificate that is for another name. */
export const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID'
/** The codes of one that is not valid now. */
export const OUTDATED: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])
/** Certificates may hold thousands, of any length. */
const MAX_NAMES = 8
const MAX_NAME = 253

/** `DNS:broker.lan, IP Address:192.168.1.10` → `broker.lan`, `192.168.1.10`; names before addresses. */
export function namesOfCertificate(error: unknown): readonly string[] {
  const names = isRecord(error) && isRecord(error['cert']) ? error['cert']['subjectaltname'] : undefined
  const entries = typeof names === 'string' ? names.split(', ') : []
  const after = (kind: string) => entries.flatMap((entry) => (entry.startsWith(kind) ? [entry.slice(kind.length)] : []))
  return [...after('DNS:'), ...after('IP Address:')].filter((name) => name.length <= MAX_NAME).slice(0, MAX_NAMES)
}
