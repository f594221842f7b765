/** A small broker for users who have no broker. It is based on aedes, over TCP, and adds limits that aedes lacks. */

import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { Aedes, type AedesOptions, type PublishPacket } from 'aedes'
import type { Logger } from 'pino'
import { ExpectedError } from '../base/errors.ts'
import { systemCode } from '../base/failures.ts'
import { inUrl, isLoopback } from '../base/hosts.ts'
import { sameSecret } from '../base/secrets.ts'
import { onceEach } from '../base/text.ts'
import { topicMatcher } from './names.ts'
import { bodyLength, headerSize, MALFORMED } from './packet-filter.ts'

/** Warns about a refused MQTT 5 client. Such clients may fall back to 3.1.1, but Home Assistant does not. */
export const REFUSED_MQTT_5 =
  'an MQTT 5 client was refused: the embedded broker supports only 3.1.1; for Home Assistant, which reports cannot_connect, use a broker such as Mosquitto'

/** Warns after a publish to the birth topic, which identifies Home Assistant, because its client id is random. */
export const HOME_ASSISTANT_HERE =
  'Home Assistant uses the embedded broker: this stops working with Home Assistant 2027.1, which supports only MQTT 5; use a broker such as Mosquitto for both, and set mqtt.url'

export const EMBEDDED_BROKER_NOTICE = 'embedded MQTT broker: MQTT 3.1.1, in memory, for this machine'
const OPEN_BROKER_NOTICE = 'embedded MQTT broker: MQTT 3.1.1, in memory, also for other machines'

interface EmbeddedBrokerOptions {
  /** Addresses beyond loopback require `username` and `password`. */
  readonly host: string
  /** 0 selects any free port. */
  readonly port: number
  /** Topics whose subscribers receive the retain flag as it was published, although MQTT 3.1.1 clears it. */
  readonly commandFilters: readonly string[]
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly birthTopic?: string | undefined
  /** The largest payload accepted, in bytes (default: 1 MiB). A client that sends a larger payload is disconnected. */
  readonly maxPayload?: number | undefined
  /** Maximum number of connections; default: 200. */
  readonly maxConnections?: number | undefined
}

/** Thrown if the embedded broker cannot start with this configuration; the message suggests a fix. */
export class EmbeddedBrokerError extends ExpectedError {
  override readonly name = 'EmbeddedBrokerError'
  readonly code: 'unsafe_host' | 'port_in_use' | 'cannot_listen'

  constructor(code: EmbeddedBrokerError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Maximum size of a packet without its payload: fixed header, the longest topic and its length field, packet id. */
const OVERHEAD_BYTES = 5 + 2 + 65_535 + 2
const MAX_PAYLOAD = 1024 * 1024

/** Disposing of a broker ends all connections; safe to call twice. */
export type EmbeddedBroker = AsyncDisposable & { readonly url: string }

/** @throws EmbeddedBrokerError */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions, log: Logger): Promise<EmbeddedBroker> {
  const { host, port, username, password, maxPayload = MAX_PAYLOAD, maxConnections = 200 } = options
  if (!isLoopback(host) && (username === undefined || password === undefined)) {
    throw new EmbeddedBrokerError(
      'unsafe_host',
      `the embedded broker does not listen on ${host || 'all addresses'} without a user name and a password: anyone could command the hub; set both, or listen on 127.0.0.1`,
    )
  }
  const aedes = await Aedes.createBroker(brokerOptions(options))
  logProblems(aedes, options.birthTopic, log)
  const store = storeOf(aedes)
  acceptUpdates(store)
  limitWaiting(aedes, store, log)
  const streams = new Set<Duplex>()
  const onBacklog = (bytes: number) =>
    log.warn({ waiting_bytes: bytes }, 'dropping an MQTT client: it does not read the messages of its subscriptions')
  let closing: Promise<void> | undefined
  const tcp = createServer({ noDelay: true }, (stream) => {
    stream.on('error', () => undefined)
    if (streams.size >= maxConnections || closing !== undefined) {
      stream.destroy()
      return
    }
    streams.add(stream)
    stream.once('close', () => streams.delete(stream))
    limitPackets(stream, maxPayload + OVERHEAD_BYTES)
    limitBacklog(stream, streams, onBacklog)
    aedes.handle(stream)
  })
  const end = async () => {
    await new Promise<void>((resolve) => aedes.close(resolve))
    for (const stream of streams) stream.destroy()
    // Closing fails if the server is not listening.
    await tcp[Symbol.asyncDispose]().catch(() => undefined)
  }
  const close = () => {
    closing ??= end()
    return closing
  }
  try {
    const url = `mqtt://${await listening(tcp, host, port)}`
    if (isLoopback(host)) log.info({ url }, EMBEDDED_BROKER_NOTICE)
    else log.info({ url, host }, OPEN_BROKER_NOTICE)
    return { url, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

function logProblems(aedes: Aedes, birthTopic: string | undefined, log: Logger): void {
  const warnOnce = onceEach((text) => log.warn(text))
  aedes.on('clientError', ({ id }, { message }) => log.debug({ client: id, detail: message }, 'MQTT client dropped'))
  aedes.on('connectionError', (_, { message }) => {
    log.debug({ detail: message }, 'MQTT connection refused')
    if (message === 'unacceptable protocol version') warnOnce(REFUSED_MQTT_5)
  })
  aedes.on('publish', ({ topic }, client) => {
    if (client !== null && topic === birthTopic) warnOnce(HOME_ASSISTANT_HERE)
  })
}

/** Maximum number of messages queued for an offline client, as in Mosquitto. Later messages are dropped. */
const MAX_WAITING = 1_000

/** The methods of aedes's store that store messages for the clients' sessions. */
interface Store {
  outgoingEnqueueCombi(subscriptions: readonly { readonly clientId: string }[], packet: unknown): Promise<void>
  /** Resolves to the removed message, if any. */
  outgoingClearMessageId(client: { readonly id: string }, packet: unknown): Promise<unknown>
  outgoingUpdate(client: unknown, packet: { readonly brokerId?: string; readonly messageId: number }): Promise<unknown>
}

const isStore = (value: unknown): value is Store =>
  typeof value === 'object' &&
  value !== null &&
  ['outgoingEnqueueCombi', 'outgoingClearMessageId', 'outgoingUpdate'].every((name) => name in value)

function storeOf(aedes: Aedes): Store {
  const store: unknown = Reflect.get(aedes, 'persistence')
  if (!isStore(store)) throw new TypeError('The store of aedes has changed.')
  return store
}

/**
 * Numbers each PUBREL. Otherwise, the store confuses a client's PUBRELs, and QoS 2 messages are lost. The update of a
 * message that is not stored, such as a retained one, must not fail, because aedes would disconnect the client.
 */
function acceptUpdates(store: Store): void {
  const update = store.outgoingUpdate.bind(store)
  store.outgoingUpdate = (client, packet) => {
    const isRelease = packet.brokerId === undefined
    if (isRelease) Object.assign(packet, { brokerId: 'pubrel', brokerCounter: packet.messageId })
    return update(client, packet).catch(() => undefined)
  }
}

/** Limits the messages queued for clients that do not reconnect, because aedes never ends their sessions. */
function limitWaiting(aedes: Aedes, store: Store, log: Logger): void {
  const connected = new Set<string>()
  const waiting = new Map<string, number>()
  const logged = new Set<string>()
  aedes.on('client', ({ id }) => {
    connected.add(id)
    logged.delete(id)
  })
  aedes.on('clientDisconnect', ({ id }) => connected.delete(id))
  const add = (id: string) => {
    const count = waiting.get(id) ?? 0
    // A message for a connected client is stored, to be sent again if the connection is lost.
    const isKept = count < MAX_WAITING || connected.has(id)
    if (isKept) waiting.set(id, count + 1)
    else if (!logged.has(id)) {
      logged.add(id)
      log.warn({ client: id }, `an MQTT client is away: only ${MAX_WAITING} messages wait for it, others are dropped`)
    }
    return isKept
  }
  const enqueue = store.outgoingEnqueueCombi.bind(store)
  const clear = store.outgoingClearMessageId.bind(store)
  store.outgoingEnqueueCombi = (subscriptions, packet) =>
    enqueue(
      subscriptions.filter(({ clientId }) => add(clientId)),
      packet,
    )
  store.outgoingClearMessageId = async (client, packet) => {
    const removed = await clear(client, packet)
    const left = (waiting.get(client.id) ?? 0) - Number(removed !== undefined)
    if (left > 0) waiting.set(client.id, left)
    else waiting.delete(client.id)
    return removed
  }
}

/** Marks a packet as published with the retain flag. The mark is not sent, because MQTT 3.1.1 has no properties. */
const RETAINED: NonNullable<PublishPacket['properties']> = {}

function brokerOptions(options: EmbeddedBrokerOptions): AedesOptions {
  const { username, password, maxPayload = MAX_PAYLOAD } = options
  const isCommand = topicMatcher(options.commandFilters)
  return {
    authenticate: (_client, givenName, givenPassword, done) => {
      const open = username === undefined && password === undefined
      const right = sameSecret(givenName ?? '', username ?? '') && sameSecret(givenPassword ?? '', password ?? '')
      if (open || right) done(null, true)
      else done(Object.assign(new Error('bad user name or password'), { returnCode: 4 }), null)
    },
    authorizePublish: (_client, packet, done) => {
      const { topic, payload, retain } = packet
      if (retain && isCommand(topic)) packet.properties = RETAINED
      if (topic.startsWith('$')) done(new Error('topics with $ are reserved for the broker'))
      else done(Buffer.byteLength(payload) > maxPayload ? new Error('message too large') : null)
    },
    authorizeForward: ({ clean }, packet) => {
      // Only for clean sessions: in others, aedes would not count a message with the retain flag as delivered.
      if (clean && packet.properties === RETAINED) packet.retain = true
      return packet
    },
  }
}

/** Starts to listen. Resolves to the address for clients on this machine. */
async function listening(server: Server, host: string, port: number): Promise<string> {
  // Later errors, for example while accepting a client, must not crash the process.
  server.on('error', () => undefined)
  try {
    await once(server.listen(port, host), 'listening')
  } catch (cause) {
    const isInUse = systemCode(cause) === 'EADDRINUSE'
    const why = isInUse
      ? 'another program already listens there, perhaps an MQTT broker: use that one, or another port'
      : cause instanceof Error
        ? cause.message
        : String(cause)
    const message = `the embedded broker cannot listen on ${host}:${port}: ${why}`
    throw new EmbeddedBrokerError(isInUse ? 'port_in_use' : 'cannot_listen', message, { cause })
  }
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return `${inUrl(host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host)}:${bound}`
}

/** Destroys `stream` if a packet header announces more than `limit` bytes, because aedes would buffer the packet. */
export function limitPackets(stream: Duplex, limit: number): void {
  const read = stream.read.bind(stream)
  /** The incomplete header at the end of the last chunk. */
  let incomplete = Buffer.alloc(0)
  /** Number of bytes before the next header. */
  let skip = 0
  const exceeds = (chunk: Buffer) => {
    const data = incomplete.length === 0 ? chunk : Buffer.concat([incomplete, chunk])
    let at = skip
    while (at < data.length) {
      const size = headerSize(data, at)
      if (size === 0) break
      const length = bodyLength(data, at, size)
      if (size === MALFORMED || length > limit) return true
      at += size + length
    }
    skip = Math.max(0, at - data.length)
    incomplete = Buffer.from(data.subarray(at))
    return false
  }
  stream.read = (size?: number) => {
    const chunk: unknown = read(size)
    if (!Buffer.isBuffer(chunk) || !exceeds(chunk)) return chunk
    stream.destroy(new Error('packet too large'))
    return null
  }
}

/** Maximum backlog of one client. A new subscriber receives all retained messages at once; these need less. */
const MAX_CLIENT_BACKLOG = 32 * 1024 * 1024
const MAX_TOTAL_BACKLOG = 64 * 1024 * 1024
/** Writes with a smaller backlog are not checked. */
const SMALL_BACKLOG = 1024 * 1024

type WriteCallback = (error: Error | null | undefined) => void

/**
 * Drops clients that do not read, because aedes waits for every client, and accepts no messages while a hundred
 * messages are waiting. The limits apply to each client, and to all `streams` together.
 */
function limitBacklog(stream: Duplex, streams: ReadonlySet<Duplex>, onDropped: (waitingBytes: number) => void): void {
  const write = stream.write.bind(stream)
  const drop = (one: Duplex) => {
    if (one.destroyed) return
    onDropped(one.writableLength)
    one.destroy()
  }
  stream.write = (chunk: unknown, encoding?: BufferEncoding | WriteCallback, done?: WriteCallback) => {
    if (typeof encoding === 'string') write(chunk, encoding, done)
    else write(chunk, encoding ?? done)
    if (stream.writableLength <= SMALL_BACKLOG) return true
    if (stream.writableLength > MAX_CLIENT_BACKLOG) drop(stream)
    let all = 0
    let fullest = stream
    for (const other of streams) {
      all += other.writableLength
      if (other.writableLength > fullest.writableLength) fullest = other
    }
    if (all > MAX_TOTAL_BACKLOG) drop(fullest)
    return true
  }
}
