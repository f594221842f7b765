/** Limits that aedes lacks: packet size, and data that clients do not read. */
import type { Duplex } from 'node:stream'
import { bodyLength, headerSize, MALFORMED } from './packet-filter.ts'

/**
 * Destroys `stream` as soon as a packet header announces more than `limit` bytes: aedes would collect all of them in
 * memory. Checks each chunk that aedes reads, and does not read ahead.
 */
export function limitPackets(stream: Duplex, limit: number): void {
  const read = stream.read.bind(stream)
  /** The incomplete header at the end of the last chunk. */
  let begun = Buffer.alloc(0)
  /** Number of bytes before the next header. */
  let left = 0
  const exceeds = (chunk: Buffer) => {
    const data = begun.length === 0 ? chunk : Buffer.concat([begun, chunk])
    let at = left
    while (at < data.length) {
      const size = headerSize(data, at)
      if (size === 0) break
      const length = bodyLength(data, at, size)
      if (size === MALFORMED || length > limit) return true
      at += size + length
    }
    left = Math.max(0, at - data.length)
    begun = Buffer.from(data.subarray(at))
    return false
  }
  stream.read = (size?: number) => {
    const chunk: unknown = read(size)
    if (!Buffer.isBuffer(chunk) || !exceeds(chunk)) return chunk
    stream.destroy(new Error('packet too large'))
    return null
  }
}

/** More than a large home retains: a client gets all retained messages at once when it subscribes. */
const FOR_ONE = 32 * 1024 * 1024
const FOR_ALL = 64 * 1024 * 1024
/** Smaller backlogs are not counted. */
const LITTLE = 1024 * 1024

type Written = (error: Error | null | undefined) => void

/**
 * Drops a client that does not read, before it stalls the others: aedes waits for every client, and accepts no more
 * messages from any of them while a hundred wait. Limits the backlog of each client, and of all `streams` together.
 */
export function limitBacklog(
  stream: Duplex,
  streams: ReadonlySet<Duplex>,
  onDropped: (waitingBytes: number) => void,
): void {
  const write = stream.write.bind(stream)
  const drop = (one: Duplex) => {
    if (one.destroyed) return
    onDropped(one.writableLength)
    one.destroy()
  }
  stream.write = (chunk: unknown, encoding?: BufferEncoding | Written, done?: Written) => {
    if (typeof encoding === 'string') write(chunk, encoding, done)
    else write(chunk, encoding ?? done)
    if (stream.writableLength <= LITTLE) return true
    if (stream.writableLength > FOR_ONE) drop(stream)
    let all = 0
    let fullest = stream
    for (const other of streams) {
      all += other.writableLength
      if (other.writableLength > fullest.writableLength) fullest = other
    }
    if (all > FOR_ALL) drop(fullest)
    return true
  }
}
