/** Explains to the user why a hub failed, and how to fix it. */
import { type Advice, advice, namesOfCertificate, OUTDATED, systemCode, WRONG_NAME } from '../base/failures.ts'
import type { HubError, HubErrorCode } from './errors.ts'

const KEYS = 'create a key at https://my.homey.app, Settings, API Keys'

export const HUB_PORTS = 'check the port: 80 for a Homey Pro, 4859 for a Self-Hosted Server'

/** Advice for each error code of Node.js and OpenSSL. */
const CONNECTIONS: readonly (readonly [RegExp, (at: URL, code: string, error: unknown) => Advice])[] = [
  [/^ECONNREFUSED$/, ({ host }) => advice(`${host} refuses the connection`, HUB_PORTS)],
  [
    /^(ENOTFOUND|EAI_AGAIN)$/,
    ({ hostname }) =>
      advice(`the name ${hostname} cannot be resolved`, "check its spelling, or use the hub's IP address"),
  ],
  [/^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/, noRoute],
  [
    /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/,
    ({ host, hostname }) =>
      advice(`${host} does not speak TLS`, `use http://, or the hub's port for HTTPS on ${hostname}`),
  ],
  [
    OUTDATED,
    ({ host }, code) =>
      advice(
        `the certificate of ${host} has expired or is not valid yet (${code})`,
        'renew the certificate, or set the clock of this machine',
      ),
  ],
  [WRONG_NAME, wrongName],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_/,
    ({ host }, code) =>
      advice(
        `the certificate of ${host} is not trusted (${code})`,
        'use https://<address with dashes>.homey.homeylocal.com, where a Homey has a public certificate; set NODE_EXTRA_CA_CERTS to the file of your own authority and restart hub2mqtt; or use http://',
      ),
  ],
]

/** Errors that a server other than a hub, or a path outside the hub's API, can cause. */
const ELSEWHERE: ReadonlySet<HubErrorCode> = new Set(['nonsense', 'unsupported', 'failed', 'rejected'])

export function explain(error: HubError, url: string): Advice {
  const at = new URL(url)
  // Keep a login in the URL out of the log and reports.
  at.username = ''
  at.password = ''
  if (at.pathname.split('/').includes('api') && ELSEWHERE.has(error.code)) {
    return advice(`the server at ${at.href} is not a hub`, `leave /api out of the address: ${at.origin}`)
  }
  const { status = 0 } = error
  if (error.code === 'nonsense' && status >= 300 && status < 400) {
    return advice(
      `the server at ${at.host} redirects elsewhere, so it is not a hub`,
      "log in if the network has a login page, or use the hub's address behind the proxy",
    )
  }
  switch (error.code) {
    case 'unreachable':
    case 'no_answer':
      return connection(error, at)
    case 'unauthorized':
      return advice('the hub does not accept the API key', `check that it is complete, or ${KEYS}`)
    case 'forbidden':
      return advice(`the API key lacks ${error.scope ?? 'a permission'}`, `${KEYS}, with at least homey.app.readonly`)
    case 'subscription':
      return advice('the hub has no valid licence', 'renew it with the manufacturer of the hub')
    case 'nonsense':
    case 'unsupported':
    case 'rejected':
      return advice(
        `the server at ${at.host} is not a hub, or is still starting: ${plain(error.message)}`,
        'check the address and the port; a hub takes a few minutes to start',
      )
    case 'failed':
      return advice(
        `the server at ${at.host} fails: ${plain(error.message)}`,
        'check that the hub is running, and any proxy in front of it; a hub takes a few minutes to start',
      )
    case 'rate_limited':
      return advice(plain(error.message), 'wait a few minutes, and check what else sends the hub many requests')
    default:
      return advice(plain(error.message))
  }
}

const NOTHING_THERE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/

/** Returns whether another server that listens at the address may have caused the failure. */
export function mayBeOtherServer({ code, cause }: HubError): boolean {
  return (code === 'unreachable' || code === 'no_answer') && !NOTHING_THERE.test(systemCode(cause))
}

function connection(error: HubError, at: URL): Advice {
  const code = systemCode(error.cause)
  const [, known] = CONNECTIONS.find(([codes]) => codes.test(code)) ?? []
  if (known !== undefined) return known(at, code, error.cause)
  if (error.code === 'unreachable') return noRoute(at)
  return advice(
    `${at.host} accepts the connection but does not answer like a hub: ${plain(error.message)}`,
    `${HUB_PORTS}${at.protocol === 'http:' ? '; if that port is for HTTPS, use https://' : ''}`,
  )
}

function noRoute({ host }: URL): Advice {
  return advice(`nothing answers at ${host}`, 'check the address, and that the hub is on and in this network')
}

function wrongName({ host }: URL, _code: string, error: unknown): Advice {
  const names = namesOfCertificate(error)
  return {
    cause: `the certificate of ${host} is for other names: ${names.join(', ')}`,
    remedy: 'use one of them in the address, or create a certificate that contains this one',
    names,
  }
}

function plain(message: string): string {
  return message.replace(/\.$/, '')
}
