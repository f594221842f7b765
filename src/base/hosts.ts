import { isIP } from 'node:net'

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Returns the host for connections from this machine, which is the loopback address if `host` is all interfaces. */
export function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

export function fromHere(listening: string): string {
  const url = new URL(listening)
  url.hostname = inUrl(reachable(fromUrl(url.hostname)))
  return url.href
}

/** Removes the brackets of an IPv6 address. */
export const fromUrl = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** Encloses an IPv6 address in brackets. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/**
 * Returns whether a `Host` header is an IP address, `localhost` or one of `names`. Prevents DNS rebinding, where the
 * domain of a web page resolves to this machine. Accepts a missing header, because browsers always send the header.
 */
export function isAllowedHost(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return true
  const { address, host } = partsOf(header)
  if (address !== undefined) return isIP(address) === 6
  if (isIP(host) === 4 || host === 'localhost') return true
  return host !== '' && names.some((allowed) => partsOf(allowed).host === host)
}

/** Returns the IPv6 address, or the name without its port and final dot. */
function partsOf(given: string) {
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^\s:/?#@[\]]+))(?::\d*)?$/.exec(given) ?? []
  // A name may end in a dot, which stands for the root zone of the DNS.
  return { address, host: (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase() }
}
