/** Hosts to listen on, and the addresses at which they are reachable. */
import { isIP } from 'node:net'

/** Whether listening on `host` stays within this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** The host at which this machine reaches a listener on `host`: replaces the address for all interfaces. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** The URL of a listener, as opened by a browser on this machine. */
export function fromHere(listening: string): string {
  const url = new URL(listening)
  url.hostname = inUrl(reachable(fromUrl(url.hostname)))
  return url.href
}

/** A host without the brackets of IPv6 in URLs. */
export const fromUrl = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** A host as written in a URL. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/**
 * Whether a `Host` header names this listener: any IP address, `localhost`, or one of `names`. Prevents DNS rebinding,
 * where a web page's own name resolves to this machine. A request without the header does not come from a browser.
 */
export function mayAsk(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return true
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^\s:/?#@[\]]+))(?::\d*)?$/.exec(header) ?? []
  if (address !== undefined) return isIP(address) === 6
  // A name may end in the dot of the root zone.
  const asked = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase()
  return isIP(asked) === 4 || asked === 'localhost' || names.some((allowed) => allowed.toLowerCase() === asked)
}
