/** Who sent a request, by its connection, and by what a trusted reverse proxy says of it. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP, SocketAddress } from 'node:net'
import { isLoopback } from '../../base/hosts.ts'
import type { Config } from '../../config/options.ts'

export interface Sender {
  /** Of the client, as far as is known. */
  readonly address: string
  /** Whether a trusted proxy sent it. */
  readonly trusted: boolean
  /** Whether a program on this machine sent it, which may pass on what others send: a tunnel, or a proxy that adds nothing. */
  readonly local: boolean
  /** What the browser speaks, `http` or `https`, where a trusted proxy names it. */
  readonly scheme: string | undefined
  /** The name and port by which it came. */
  readonly host: string | undefined
  /** Whether the proxy has logged its client in. */
  readonly ingress: boolean
}

const FORWARDING = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** @param rules whom to trust, and whether those log their users in for `X-Ingress-Path` */
export function senderOf({ socket, headers }: IncomingMessage, rules: Config['http']): Sender {
  const peer = addressOf(socket.remoteAddress ?? '') ?? ''
  const isTrusted = (address: string) => rules.trusted_proxies.some((one) => addressOf(one) === address)
  const trusted = isTrusted(peer)
  const isForwarded = FORWARDING.some((name) => name in headers)
  const given = (name: string) => (trusted ? listOf(headers, name) : [])
  return {
    // Each proxy adds whom it heard from at the end; what stands before may be made up.
    address:
      given('x-forwarded-for')
        .map(addressOf)
        .findLast((one) => one === undefined || !isTrusted(one)) ?? peer,
    trusted,
    local: !trusted && !isForwarded && isLoopback(peer),
    // Traefik names the WebSocket's.
    scheme: given('x-forwarded-proto')[0]?.toLowerCase().replace('ws', 'http'),
    host: given('x-forwarded-host')[0] ?? headers.host,
    ingress: trusted && rules.ingress && typeof headers['x-ingress-path'] === 'string',
  }
}

function listOf(headers: IncomingHttpHeaders, name: string): string[] {
  const value = headers[name]
  const text = Array.isArray(value) ? value.join(',') : (value ?? '')
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

/**
 * Whether a browser's page that sent a request is of the same origin as what it asks; `absent`: no page did. Behind a
 * trusted proxy that does not name the scheme, either will do.
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
  // Home Assistant names that of its own listener where a proxy with TLS before it names none.
  return scheme === undefined || ingress ? SCHEMES : SCHEMES.filter((one) => one === scheme)
}

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
