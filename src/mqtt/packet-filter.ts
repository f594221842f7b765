/**
 * What arrives from a broker, before mqtt.js sees it: a PUBLISH of any size is cut to what may be kept in memory, and
 * reason codes that mqtt.js takes for a protocol error are replaced.
 */
import type { Duplex } from 'node:stream'
import type { Protocol } from './types.ts'

/** A PUBLISH with a longer body is cut. */
const LONGEST_BODY = 1024 * 1024
/** So much of its payload is left: more than any command may have. */
const PAYLOAD_LEFT = 256 * 1024
/** So much of it is looked at: a topic, properties, and the payload that is left. */
const LOOKED_AT = 2 * PAYLOAD_LEFT

const PUBLISH = 3
const PUBACK = 4
/** The reason codes of a PUBACK that mqtt.js knows. */
const KNOWN_REASONS = new Set([0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])
const UNSPECIFIED = 0x80
/** Mosquitto answers so beyond its `message_size_limit`. No version of MQTT has this code in a PUBACK. */
const PACKET_TOO_LARGE = 0x95
/**
 * "Payload format invalid" takes its place. No broker has a reason to say so: this link does not declare the format of
 * its payloads.
 */
export const TOO_LARGE_STAND_IN = 0x99

/** How a web server answers what it does not understand. */
const HTTP = 'HTTP/'
const SPEAKS_HTTP = 'what answers there speaks HTTP and not MQTT; ws:// reaches MQTT over WebSocket'

/** Filters what `stream` delivers. Call it before anybody listens. */
export function guardInlet<S extends Duplex>(stream: S, protocol: Protocol): S {
  const push = stream.push.bind(stream)
  const packetFilter = new PacketFilter(protocol)
  let begun = false
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (!Buffer.isBuffer(chunk)) return push(chunk, encoding)
    const isHttp = !begun && chunk.subarray(0, HTTP.length).toString('latin1') === HTTP
    begun = true
    if (!isHttp) return push(packetFilter.filter(chunk))
    stream.destroy(new Error(SPEAKS_HTTP))
    return false
  }
  return stream
}

interface Header {
  readonly type: number
  readonly flags: number
  /** Of the header itself. */
  readonly size: number
  /** Of the body. */
  readonly length: number
}

/** Bytes of a chunk, and what passes in their place; undefined: the bytes themselves. */
interface Piece {
  readonly size: number
  readonly replacement?: Buffer
}

const NOTHING = Buffer.alloc(0)

/** Parses packet headers over chunks cut anywhere. */
export class PacketFilter {
  readonly #protocol: Protocol
  /** A header that the last chunk ended in. */
  #begun: Buffer = NOTHING
  /** The packet whose body is under way. */
  #packet: Header = { type: 0, flags: 0, size: 0, length: 0 }
  #done = 0
  /** The beginning of a body that is cut; undefined: the body passes as it is. */
  #cut: Buffer[] | undefined
  #malformed = false

  constructor(protocol: Protocol) {
    this.#protocol = protocol
  }

  /** What mqtt.js gets of a chunk: mostly the chunk itself. It may be changed in place. */
  filter(chunk: Buffer): Buffer {
    const data = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    this.#begun = NOTHING
    const parts: Buffer[] = []
    let passed = 0
    for (let at = 0; at < data.length; ) {
      const rest = data.subarray(at)
      const { size, replacement } = this.#done < this.#packet.length ? this.#body(rest) : this.#header(rest)
      if (replacement !== undefined) {
        parts.push(data.subarray(passed, at), replacement)
        passed = at + size
      }
      at += size
    }
    return parts.length === 0 ? data : Buffer.concat([...parts, data.subarray(passed)])
  }

  #header(rest: Buffer): Piece {
    const header = this.#malformed ? 'malformed' : readHeader(rest, 0)
    if (header === 'malformed') {
      // mqtt.js makes an end of it.
      this.#malformed = true
      return { size: rest.length }
    }
    if (header === undefined) {
      this.#begun = Buffer.from(rest)
      return { size: rest.length, replacement: NOTHING }
    }
    this.#packet = header
    this.#done = 0
    this.#cut = header.type === PUBLISH && header.length > LONGEST_BODY ? [] : undefined
    return { size: header.size, ...(this.#cut && { replacement: NOTHING }) }
  }

  #body(rest: Buffer): Piece {
    const begin = this.#done
    const piece = rest.subarray(0, this.#packet.length - begin)
    const size = piece.length
    this.#done += size
    if (this.#cut === undefined) {
      // Without a reason it says that the broker has taken the publish.
      if (this.#packet.type === PUBACK && this.#packet.length > 2) replaceReason(piece, begin)
      return { size }
    }
    // A copy: a view would keep the network buffer.
    if (begin < LOOKED_AT) this.#cut.push(Buffer.from(piece.subarray(0, LOOKED_AT - begin)))
    if (this.#done < this.#packet.length) return { size, replacement: NOTHING }
    return { size, replacement: shortened(this.#packet, Buffer.concat(this.#cut), this.#protocol) }
  }
}

function readHeader(data: Buffer, at: number): Header | 'malformed' | undefined {
  const first = data[at] ?? 0
  for (let i = 1, length = 0; i <= 4; i += 1) {
    const byte = data[at + i]
    if (byte === undefined) return undefined
    length += (byte & 0x7f) * 2 ** (7 * (i - 1))
    if (byte < 0x80) return { type: first >> 4, flags: first & 0x0f, size: i + 1, length }
  }
  return 'malformed'
}

/** `begin`: where `piece` begins in the body: two bytes of packet id, then the reason. */
function replaceReason(piece: Buffer, begin: number): void {
  const at = 2 - begin
  const reason = piece[at]
  if (at < 0 || reason === undefined || KNOWN_REASONS.has(reason)) return
  piece[at] = reason === PACKET_TOO_LARGE ? TOO_LARGE_STAND_IN : UNSPECIFIED
}

/** The packet with the beginning of its payload only. Properties that are too long are left out. */
function shortened({ flags, type }: Header, begin: Buffer, protocol: Protocol): Buffer {
  const qos = (flags >> 1) & 3
  const topicEnd = 2 + begin.readUInt16BE(0) + (qos > 0 ? 2 : 0)
  const properties = protocol === '5' ? propertiesAt(begin, topicEnd) : Buffer.alloc(0)
  const body = [begin.subarray(0, topicEnd), properties, begin.subarray(-PAYLOAD_LEFT)]
  const length = body.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.from([(type << 4) | flags, ...lengthBytes(length)]), ...body])
}

function propertiesAt(begin: Buffer, at: number): Buffer {
  const none = Buffer.from([0])
  // Their length is written like that of a packet, behind a byte.
  const header = readHeader(begin, at - 1)
  if (header === undefined || header === 'malformed') return none
  const end = at + header.size - 1 + header.length
  return end <= LOOKED_AT - PAYLOAD_LEFT ? begin.subarray(at, end) : none
}

function lengthBytes(length: number): number[] {
  const low = length & 0x7f
  return length < 0x80 ? [low] : [low | 0x80, ...lengthBytes(length >> 7)]
}
