/**
 * Searches by mDNS: sends queries on each network interface from a separate port, so that responders answer only to
 * that port (RFC 6762, 5.1 and 6.7). A device counts as a hub only if it answers a ping as a hub does.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Answer, decode, encode } from 'dns-packet'
import { type Clock, sleep } from '../../../base/clock.ts'
import { HubClient } from '../../../hub/client.ts'
import { HubError } from '../../../hub/errors.ts'
import { shownText } from '../../../observability/controls.ts'
import type { Setup } from '../api/protocol.ts'

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
/** Maximum number of records to read from a packet. Packets of real devices contain fewer records. */
const MAX_RECORDS = 64

/** Finds at most 16 hubs within three seconds. @param to where to send the queries; default: the whole network */
export async function findHubs({ clock, to = GROUP }: { clock: Clock; to?: typeof GROUP }): Promise<FoundHub[]> {
  const pings = new Map<string, ReturnType<typeof ping>>()
  const onMessage = (packet: Buffer, { address }: { readonly address: string }) => {
    for (const candidate of candidatesOf(packet, address)) {
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

const QUESTION = encode({ questions: [HUB_SERVICE, WEB_SERVICE].map((name) => ({ type: 'PTR', name })) })

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
export function candidatesOf(packet: Buffer, sender: string) {
  const records = recordsOf(packet)
  const of = <T extends Answer['type']>(type: T, name: string | undefined) =>
    records.filter((one): one is Answer & { type: T } => one.type === type && one.name.toLowerCase() === name)
  return [HUB_SERVICE, WEB_SERVICE].flatMap((type) =>
    of('PTR', type).flatMap(({ data: target }) => {
      const instance = target.toLowerCase()
      const [service] = of('SRV', instance)
      const own = of('A', service?.data.target.toLowerCase()).find(({ data }) => isOfTheHome(data, sender))
      const address = own?.data ?? sender
      /** Whether the device announces itself as a hub. */
      const isHub = type === HUB_SERVICE
      // A hub may announce the port of another service, but its API is on port 80.
      const ports = new Set([...(service === undefined ? [] : [service.data.port]), ...(isHub ? [80] : [])])
      const name = nameOf([of('TXT', instance)[0]?.data ?? []].flat().map(String), target.slice(0, -type.length - 1))
      return [...ports].map((port) => ({ url: `http://${address}${port === 80 ? '' : `:${port}`}`, name, isHub }))
    }),
  )
}

/** Returns the records of an answer; none if the packet is malformed or a question. The records are untrusted. */
function recordsOf(packet: Buffer): readonly Answer[] {
  try {
    const { type, answers = [], additionals = [] } = decode(packet)
    return type === 'response' ? [...answers, ...additionals].slice(0, MAX_RECORDS) : []
  } catch {
    return []
  }
}

function nameOf(texts: readonly string[], instance: string): string {
  const given = texts.find((text) => text.startsWith('name='))?.slice('name='.length)
  return shownText(given || instance).slice(0, MAX_NAME_LENGTH)
}

const PRIVATE = /^(?:10\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.)/

// From a packet that is cut off, dns-packet decodes addresses such as `10.0.undefined.undefined`.
const isOfTheHome = (address: string, sender: string) =>
  address === sender || (isIPv4(address) && PRIVATE.test(address))

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
