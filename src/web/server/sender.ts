import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP, SocketAddress } from 'node:net'
import { isLoopback } from '../../base/hosts.ts'
import type { Config } from '../../config/options.ts'

export type Sender = Readonly<ReturnType<typeof senderOf>>

const FORWARDING = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** @param rules the trusted proxies; if `ingress` is set, they authenticate users and send X-Ingress-Path */
export function senderOf({ socket, headers }: IncomingMessage, rules: Config['http']) {
  const peer = addressOf(socket.remoteAddress ?? '') ?? ''
  const isTrusted = (address: string) => rules.trusted_proxies.some((one) => addressOf(one) === address)
  const trusted = isTrusted(peer)
  const isForwarded = FORWARDING.some((name) => name in headers)
  const given = (name: string) => (trusted ? listOf(headers, name) : [])
  // Each proxy appends the address of its client, so a client may have forged all earlier entries.
  const clients = given('x-forwarded-for').map(addressOf)
  return {
    address: clients.findLast((one) => one === undefined || !isTrusted(one)) ?? peer,
    /** Whether a trusted proxy sent the request. */
    trusted,
    /** Whether a program on this machine sent the request. The program may be a tunnel that serves other machines. */
    local: !trusted && !isForwarded && isLoopback(peer),
    /** The browser's scheme, if a trusted proxy states it. Traefik states `ws` or `wss` for a WebSocket. */
    scheme: given('x-forwarded-proto')[0]?.toLowerCase().replace('ws', 'http'),
    /** The requested host name and port. */
    host: given('x-forwarded-host')[0] ?? headers.host,
    /** Whether the proxy has authenticated the user. */
    ingress: trusted && rules.ingress && typeof headers['x-ingress-path'] === 'string',
  }
}

function listOf(headers: IncomingHttpHeaders, name: string): string[] {
  // Node.js joins several headers of the same name with commas.
  const parts = String(headers[name] ?? '').split(',')
  return parts.map((one) => one.trim()).filter((one) => one !== '')
}

/**
 * Compares the origin of the page that sent the request with the address it requested; `absent`: no page sent it.
 * Behind a trusted proxy that does not state the scheme, both schemes match.
 */
export function originOf(headers: IncomingHttpHeaders, sender: Sender): 'same' | 'other' | 'absent' {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'other'
  const { origin } = headers
  if (origin === undefined) return 'absent'
  if (!URL.canParse(origin)) return 'other'
  const page = new URL(origin)
  if (!schemesOf(sender).includes(page.protocol.slice(0, -1))) return 'other'
  const here = `${page.protocol}//${sender.host}`
  return URL.canParse(here) && new URL(here).host === page.host ? 'same' : 'other'
}

const SCHEMES = ['http', 'https']

function schemesOf({ trusted, scheme, ingress }: Sender): readonly string[] {
  if (!trusted) return ['http']
  // Home Assistant may state the scheme of its own listener instead of a TLS proxy's, so accept both schemes.
  return scheme === undefined || ingress ? SCHEMES : SCHEMES.filter((one) => one === scheme)
}

/**
 * Returns the IP address in a text from a header or a socket, which may include a port, brackets or a zone. Converts an
 * IPv4-mapped IPv6 address to IPv4.
 */
export function addressOf(text: string): string | undefined {
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(text) ?? []
  const bare = inBrackets ?? withPort ?? text
  const family = isIP(bare)
  if (family === 0) return undefined
  const { address } = new SocketAddress({ address: bare, family: family === 4 ? 'ipv4' : 'ipv6' })
  return address.replace(/^::ffff:(?=\d+\.)/, '')
}

/** Returns the network of an address: for IPv6 the first 64 bits, because one client can use all addresses in it. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array.from({ length: 8 - (head.length + (tail?.length ?? 0)) }, () => '0')
  return [...head, ...zeros, ...(tail ?? [])].slice(0, 4).join(':')
}
