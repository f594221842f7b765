/**
 * Changes the bytes from the broker before mqtt.js reads them: truncates large PUBLISH packets to save memory, and
 * replaces reason codes that mqtt.js would treat as a protocol error.
 */
import type { Duplex } from 'node:stream'
import type { Protocol } from './types.ts'

/** Maximum size of the body of a PUBLISH, in bytes. A larger body is cut. */
const MAX_BODY_BYTES = 1024 * 1024
/** The size of a cut payload, which exceeds the payload limit of any command. */
const CUT_PAYLOAD_BYTES = 256 * 1024
/** Number of bytes to buffer of a body that is being cut: the topic, the properties and the kept payload. */
const BUFFERED_BYTES = 2 * CUT_PAYLOAD_BYTES

const PUBLISH = 3
const PUBACK = 4
const KNOWN_REASONS = new Set([0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])
const UNSPECIFIED = 0x80
/** Mosquitto's reason code for a message beyond `message_size_limit`. MQTT does not define this code for a PUBACK. */
export const PACKET_TOO_LARGE = 0x95
/** Replaces `PACKET_TOO_LARGE`. Brokers never send this code, because the link does not set a payload format. */
export const TOO_LARGE_STAND_IN = 0x99

/** The start of a web server's response to an invalid request. */
const HTTP = 'HTTP/'
const SPEAKS_HTTP = 'the server there speaks HTTP, not MQTT; for MQTT over WebSocket, use ws://'

/** Filters the bytes that a stream receives. Call this before adding listeners to the stream. */
export function filterPackets<S extends Duplex>(stream: S, protocol: Protocol): S {
  const push = stream.push.bind(stream)
  const packetFilter = new PacketFilter(protocol)
  let hasStarted = false
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (!Buffer.isBuffer(chunk)) return push(chunk, encoding)
    const isHttp = !hasStarted && chunk.subarray(0, HTTP.length).toString('latin1') === HTTP
    hasStarted = true
    if (!isHttp) return push(packetFilter.filter(chunk))
    stream.destroy(new Error(SPEAKS_HTTP))
    return false
  }
  return stream
}

const NOTHING = Buffer.alloc(0)

export class PacketFilter {
  readonly #protocol: Protocol
  /** The incomplete header at the end of the last chunk. */
  #incomplete: Buffer = NOTHING
  /** The incoming packet: its first byte, the length of its body, and the number of body bytes that have arrived. */
  #first = 0
  #length = 0
  #done = 0
  /** The beginning of a body that is being cut; `undefined` if the body passes unchanged. */
  #cut: Buffer[] | undefined
  #malformed = false

  constructor(protocol: Protocol) {
    this.#protocol = protocol
  }

  /** Returns the bytes for mqtt.js, which are usually the chunk itself. May change the chunk in place. */
  filter(chunk: Buffer): Buffer {
    const data = this.#incomplete.length === 0 ? chunk : Buffer.concat([this.#incomplete, chunk])
    this.#incomplete = NOTHING
    const parts: Buffer[] = []
    /** The offset of the first byte that is passed through unchanged. */
    let from = 0
    for (let at = 0; at < data.length; ) {
      const start = at
      at += this.#done === this.#length ? this.#header(data, at) : this.#body(data, at)
      if (this.#cut === undefined && this.#incomplete === NOTHING) continue
      parts.push(data.subarray(from, start))
      from = at
      if (this.#cut === undefined || this.#done < this.#length) continue
      parts.push(shortened(this.#first, Buffer.concat(this.#cut), this.#protocol))
      this.#cut = undefined
    }
    return from === 0 ? data : Buffer.concat([...parts, data.subarray(from)])
  }

  /** Reads the header of a packet. Returns the number of bytes read. */
  #header(data: Buffer, at: number): number {
    const size = this.#malformed ? MALFORMED : headerSize(data, at)
    // Pass on the malformed packet, because mqtt.js reports it as an error.
    if (size === MALFORMED) this.#malformed = true
    else if (size === 0) this.#incomplete = Buffer.from(data.subarray(at))
    if (size === MALFORMED || size === 0) return data.length - at
    this.#first = data[at] ?? 0
    this.#length = bodyLength(data, at, size)
    this.#done = 0
    if (this.#first >> 4 === PUBLISH && this.#length > MAX_BODY_BYTES) this.#cut = []
    return size
  }

  /** Reads the body of a packet, or a part of it. Returns the number of bytes read. */
  #body(data: Buffer, at: number): number {
    const start = this.#done
    const size = Math.min(this.#length - start, data.length - at)
    this.#done += size
    // Copy the bytes, because a view would keep the network buffer in memory.
    if (start < BUFFERED_BYTES)
      this.#cut?.push(Buffer.from(data.subarray(at, at + Math.min(size, BUFFERED_BYTES - start))))
    // A PUBACK has two bytes of packet id, then the reason. A PUBACK without a reason means success.
    if (this.#first >> 4 === PUBACK && start <= 2 && this.#done > 2) replaceReason(data, at + 2 - start)
    return size
  }
}

/** The result of `headerSize` for a header whose length field is longer than four bytes. */
export const MALFORMED = -1

/** Returns the size of the packet header that begins at `at`; 0 if the header is incomplete. */
export function headerSize(data: Buffer, at: number): number {
  for (let size = 2; size <= 5; size += 1) {
    const byte = data[at + size - 1]
    if (byte === undefined) return 0
    if (byte < 0x80) return size
  }
  return MALFORMED
}

export function bodyLength(data: Buffer, at: number, size: number): number {
  let length = 0
  for (let last = at + size - 1; last > at; last -= 1) length = length * 0x80 + ((data[last] ?? 0) & 0x7f)
  return length
}

function replaceReason(data: Buffer, at: number): void {
  const reason = data[at] ?? 0
  if (!KNOWN_REASONS.has(reason)) data[at] = reason === PACKET_TOO_LARGE ? TOO_LARGE_STAND_IN : UNSPECIFIED
}

/** Builds a PUBLISH packet with a part of the payload. Leaves out properties that are too long. */
function shortened(first: number, beginning: Buffer, protocol: Protocol): Buffer {
  const hasId = (first & 0b110) > 0
  const topicEnd = 2 + beginning.readUInt16BE(0) + (hasId ? 2 : 0)
  const properties = protocol === '5' ? propertiesAt(beginning, topicEnd) : NOTHING
  const body = Buffer.concat([beginning.subarray(0, topicEnd), properties, beginning.subarray(-CUT_PAYLOAD_BYTES)])
  return Buffer.concat([Buffer.from([first, ...lengthBytes(body.length)]), body])
}

function propertiesAt(beginning: Buffer, at: number): Buffer {
  // `headerSize` expects one byte before the length field, as at the start of a packet.
  const size = headerSize(beginning, at - 1)
  const end = size <= 0 ? BUFFERED_BYTES : at + size - 1 + bodyLength(beginning, at - 1, size)
  return end <= BUFFERED_BYTES - CUT_PAYLOAD_BYTES ? beginning.subarray(at, end) : Buffer.from([0])
}

function lengthBytes(length: number): number[] {
  const low = length & 0x7f
  return length < 0x80 ? [low] : [low | 0x80, ...lengthBytes(length >> 7)]
}
