/** A hub's failure in words for its owner: what was found at its address, and what mends it. */
import { namesOfCertificate, OUTDATED, WRONG_NAME } from '../base/certificates.ts'
import type { HubError, HubErrorCode } from './errors.ts'

export interface Explanation {
  /** One sentence without a full stop. */
  readonly cause: string
  /** What a person can do; empty if only waiting helps. */
  readonly remedy: string
  /** Names and addresses in it that are not of the configuration. */
  readonly names?: readonly string[]
}

const KEYS = 'make a key where the hub makes them: https://my.homey.app, Settings, API Keys'

/** Where a hub listens. */
export const HUB_PORTS = 'check the port: 80 for a Homey Pro, 4859 for a Self-Hosted Server'

/** Node's and OpenSSL's codes of a connection that failed. */
const CONNECTIONS: Readonly<Record<string, (at: URL) => Explanation>> = {
  ECONNREFUSED: (at) => ({
    cause: `${at.host} refuses the connection`,
    remedy: HUB_PORTS,
  }),
  ENOTFOUND: (at) => unknownName(at),
  EAI_AGAIN: (at) => unknownName(at),
  EHOSTUNREACH: (at) => noWay(at),
  ENETUNREACH: (at) => noWay(at),
  ETIMEDOUT: (at) => noWay(at),
  EPROTO: (at) => plainPort(at),
  ERR_SSL_WRONG_VERSION_NUMBER: (at) => plainPort(at),
  ERR_SSL_PACKET_LENGTH_TOO_LONG: (at) => plainPort(at),
}

const unknownName = ({ hostname }: URL): Explanation => ({
  cause: `the name ${hostname} is not known`,
  remedy: "check its spelling, or use the hub's IP address",
})

const noWay = ({ host }: URL): Explanation => ({
  cause: `nothing answers at ${host}`,
  remedy: 'check the address, and that the hub is on and in this network',
})

const plainPort = ({ host, hostname }: URL): Explanation => ({
  cause: `${host} does not speak TLS`,
  remedy: `use http://, or the hub's port for HTTPS on ${hostname}`,
})

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/

/** How what is no hub, or not its API, fails. */
const ELSEWHERE: ReadonlySet<HubErrorCode> = new Set(['nonsense', 'unsupported', 'failed', 'rejected'])

/** @param url the configured address of the hub */
export function explain(error: HubError, url: string): Explanation {
  const at = new URL(url)
  // The log and a report show where it is, never a login in it.
  at.username = ''
  at.password = ''
  if (at.pathname.split('/').includes('api') && ELSEWHERE.has(error.code)) {
    return { cause: `what answers at ${at.href} is no hub`, remedy: `leave /api out of the address: ${at.origin}` }
  }
  const { status = 0 } = error
  if (error.code === 'nonsense' && status >= 300 && status < 400) return redirect(at)
  switch (error.code) {
    case 'unreachable':
    case 'no_answer':
      return connection(error, at)
    case 'unauthorized':
      return { cause: 'the hub does not accept the API key', remedy: `check that it is whole, or ${KEYS}` }
    case 'forbidden':
      return {
        cause: `the API key lacks ${error.scope ?? 'a permission'}`,
        remedy: `${KEYS}, with at least homey.app.readonly`,
      }
    case 'subscription':
      return { cause: 'the hub has no valid licence', remedy: 'renew it with the maker of the hub' }
    case 'nonsense':
    case 'unsupported':
    case 'rejected':
      return {
        cause: `what answers at ${at.host} is no hub, or not yet: ${plain(error.message)}`,
        remedy: 'check the address and the port; a hub that starts needs some minutes',
      }
    case 'failed':
      return {
        cause: `what answers at ${at.host} fails: ${plain(error.message)}`,
        remedy: 'see that the hub runs, also behind a proxy; a hub that starts needs some minutes',
      }
    case 'rate_limited':
      return { cause: plain(error.message), remedy: 'wait some minutes, and see what else asks the hub often' }
    default:
      return { cause: plain(error.message), remedy: '' }
  }
}

const redirect = ({ host }: URL): Explanation => ({
  cause: `what answers at ${host} redirects elsewhere, which no hub does`,
  remedy: 'log in where the network has a login page, or give the address behind the proxy',
})

const NOTHING_THERE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
])

/** Whether something may listen at the address although no hub answers. */
export function isTaken({ code, cause }: HubError): boolean {
  return (code === 'unreachable' || code === 'no_answer') && !NOTHING_THERE.has(systemCode(cause))
}

const systemCode = (cause: unknown): string =>
  cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''

function connection(error: HubError, at: URL): Explanation {
  const code = systemCode(error.cause)
  const known = CONNECTIONS[code]
  if (known !== undefined) return known(at)
  if (CERTIFICATE.test(code)) return certificate(code, error.cause, at)
  if (error.code === 'unreachable') return noWay(at)
  return {
    cause: `${at.host} takes the connection and does not answer as a hub: ${plain(error.message)}`,
    remedy: `${HUB_PORTS}${at.protocol === 'http:' ? '; if that port is for HTTPS, use https://' : ''}`,
  }
}

function certificate(code: string, error: unknown, { host }: URL): Explanation {
  if (OUTDATED.has(code)) {
    return {
      cause: `the certificate of ${host} is not valid now (${code})`,
      remedy: 'renew the certificate, or set the clock of this machine',
    }
  }
  if (code === WRONG_NAME) {
    const names = namesOfCertificate(error)
    return {
      cause: `the certificate of ${host} is for other names: ${names.join(', ')}`,
      remedy: 'use one of them in the address, or make a certificate with this one in it',
      names,
    }
  }
  return {
    cause: `the certificate of ${host} is not trusted (${code})`,
    remedy:
      'a Homey has a public one at https://<address with dashes>.homey.homeylocal.com; NODE_EXTRA_CA_CERTS names the file of an authority of your own; or use http://',
  }
}

/** Part of a sentence. */
function plain(message: string): string {
  return message.replace(/\.$/, '')
}
