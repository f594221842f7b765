/**
 * Searches by mDNS: sends queries on each network interface from a separate port, so that responders answer only to
 * that port (RFC 6762, 5.1 and 6.7). A device counts as a hub only if it answers a ping as a hub does.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { type Clock, sleep } from '../../../base/clock.ts'
import { HubClient } from '../../../hub/client.ts'
import { HubError } from '../../../hub/errors.ts'
import { shownText } from '../../../observability/controls.ts'
import type { Setup } from '../api/protocol.ts'
import { type DnsRecord, question, readRecords } from './dns.ts'

type FoundHub = Setup['found'][number]

/** A Homey Pro announces HUB_SERVICE, with `name` in its TXT record. A Self-Hosted Server announces WEB_SERVICE. */
const HUB_SERVICE = '_homey._tcp.local'
const WEB_SERVICE = '_http._tcp.local'

const GROUP = { address: '224.0.0.251', port: 5353 }
/** Queries can get lost, so each is sent again after this time. Responders may take half a second to answer. */
const REPEAT_MS = 400
const LISTEN_MS = 1_500
const PING_MS = 1_400
const MAX_FOUND = 16
const MAX_INTERFACES = 8
const MAX_NAME_LENGTH = 64

/** Finds at most 16 hubs within three seconds. @param to where to send the queries; default: the whole network */
export async function findHubs({ clock, to = GROUP }: { clock: Clock; to?: typeof GROUP }): Promise<FoundHub[]> {
  const pings = new Map<string, ReturnType<typeof ping>>()
  const onMessage = (packet: Buffer, { address }: { readonly address: string }) => {
    for (const candidate of candidatesOf(readRecords(packet), address)) {
      if (pings.size < MAX_FOUND && !pings.has(candidate.url)) pings.set(candidate.url, ping(candidate, clock))
    }
  }
  const sockets = await openSockets(to === GROUP ? ownAddresses() : [undefined], onMessage)
  const query = () => {
    // Ignore errors, because some networks may be unreachable.
    for (const socket of sockets) socket.send(QUESTION, to.port, to.address, () => undefined)
  }
  query()
  clock.after(REPEAT_MS, query)
  await sleep(clock, LISTEN_MS)
  for (const socket of sockets) socket.close()
  const answered = (await Promise.all(pings.values())).filter((one) => one !== undefined)
  // If a hub answers at several addresses, keep only the first one.
  const byHub = Map.groupBy(answered, ({ found, id }) => id ?? found.url)
  return [...byHub.values()].flatMap(([first]) => first?.found ?? [])
}

const QUESTION = question([HUB_SERVICE, WEB_SERVICE])

function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const own = all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address)
  return own.slice(0, MAX_INTERFACES)
}

/** Opens a socket on each network interface. Skips interfaces on which this fails. */
async function openSockets(
  addresses: readonly (string | undefined)[],
  onMessage: (packet: Buffer, sender: { readonly address: string }) => void,
): Promise<Socket[]> {
  const opening = addresses.map(async (address) => {
    const socket = createSocket('udp4')
    try {
      socket.bind(0, address)
      await once(socket, 'listening')
      if (address !== undefined) socket.setMulticastInterface(address)
      socket.on('error', () => undefined)
      return socket.on('message', onMessage)
    } catch {
      socket.close()
      return undefined
    }
  })
  return (await Promise.all(opening)).filter((socket) => socket !== undefined)
}

/** Returns the hubs in an answer. If the answer contains no usable address of a hub, uses the sender's address. */
export function candidatesOf(records: readonly DnsRecord[], sender: string) {
  const of = <T extends DnsRecord['type']>(type: T, name: string | undefined) =>
    records.filter((one): one is DnsRecord & { type: T } => one.type === type && one.name === name)
  return records.flatMap((record) => {
    if (record.type !== 'PTR' || (record.name !== HUB_SERVICE && record.name !== WEB_SERVICE)) return []
    const instance = record.target.toLowerCase()
    const [service] = of('SRV', instance)
    const own = of('A', service?.target.toLowerCase()).find(({ address }) => isOfTheHome(address, sender))
    const address = own?.address ?? sender
    /** Whether the device announces itself as a hub. */
    const isHub = record.name === HUB_SERVICE
    // A hub may announce the port of another service, but its API is on port 80.
    const ports = new Set([...(service === undefined ? [] : [service.port]), ...(isHub ? [80] : [])])
    const name = nameOf(of('TXT', instance)[0]?.texts ?? [], record)
    return [...ports].map((port) => ({ url: `http://${address}${port === 80 ? '' : `:${port}`}`, name, isHub }))
  })
}

function nameOf(texts: readonly string[], { name, target }: { name: string; target: string }): string {
  const given = texts.find((text) => text.startsWith('name='))?.slice('name='.length)
  const instance = target.slice(0, Math.max(0, target.length - name.length - 1))
  return shownText(given || instance).slice(0, MAX_NAME_LENGTH)
}

const PRIVATE = /^(?:10\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.)/

const isOfTheHome = (address: string, sender: string) => address === sender || PRIVATE.test(address)

/** Pings a possible hub without sending a key. Resolves to `undefined` if it is not a hub. */
async function ping({ url, name, isHub }: ReturnType<typeof candidatesOf>[number], clock: Clock) {
  const options = { url, apiKey: () => '', timeoutMs: PING_MS, maxRequests: 1, hasApp: () => true }
  const client = new HubClient({ ...options, pathPrefix: 'auto' }, clock)
  try {
    const { id } = await client.hub.identify()
    // Many web servers answer any request, but only a hub has an id or announces itself as a hub.
    return id === null && !isHub ? undefined : { found: { url, name: name || url }, id }
  } catch (error) {
    if (error instanceof HubError) return undefined
    throw error
  } finally {
    await client.close()
  }
}
