/** Addresses as others write them, each in one spelling. */
import { isIP, SocketAddress } from 'node:net'

/**
 * The address in a header or of a socket, which may have a port, brackets or a zone; `undefined` if it is not an address. An IPv4
 * address as a listener on IPv6 shows it is an IPv4 address.
 */
export function addressOf(text: string): string | undefined {
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(text) ?? []
  const bare = inBrackets ?? withPort ?? text
  const family = isIP(bare)
  if (family === 0) return undefined
  const { address } = new SocketAddress({ address: bare, family: family === 4 ? 'ipv4' : 'ipv6' })
  return address.replace(/^::ffff:(?=\d+\.)/, '')
}

/** Where an address of one spelling belongs: who has an IPv6 address has 2^64 of them. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array.from({ length: 8 - (head.length + (tail?.length ?? 0)) }, () => '0')
  return [...head, ...zeros, ...(tail ?? [])].slice(0, 4).join(':')
}
