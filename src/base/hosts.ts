/** Names and addresses that a program listens on, and by which others reach it. */
import { isIP } from 'node:net'

/** Whether listening on `host` stays within this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Where a listener on `host` is reached from here: one cannot connect to the address for all interfaces. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** The address to open in a browser on this machine, of one that a listener has. */
export function fromHere(listening: string): string {
  const url = new URL(listening)
  url.hostname = inUrl(reachable(fromUrl(url.hostname)))
  return url.href
}

/** A host without the brackets that IPv6 has in an address. */
export const fromUrl = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** A host as it stands in an address. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/**
 * Whether a `Host` header names this listener: any IP address, `localhost`, or one of `names`. A page in a browser whose
 * own name leads here must not read what is answered. A request without the header comes from no browser.
 */
export function mayAsk(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return true
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^\s:/?#@[\]]+))(?::\d*)?$/.exec(header) ?? []
  if (address !== undefined) return isIP(address) === 6
  // A name may end in the dot of the root.
  const asked = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase()
  return isIP(asked) === 4 || asked === 'localhost' || names.some((allowed) => allowed.toLowerCase() === asked)
}
