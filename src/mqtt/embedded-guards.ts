/** What the embedded broker checks because aedes does not: the origin of web pages, packet sizes, clients that do not read. */
import type { Duplex } from 'node:stream'
import { mayAsk } from '../base/hosts.ts'
import { bodyLength, headerSize, MALFORMED } from './packet-filter.ts'

/**
 * Whether a client may open a WebSocket. A browser sends the page's origin, and any page can reach a loopback address,
 * those of other programs on this machine too. With a password, a page from the same host may, as it has to know it.
 * Without one, only a page from the very address that it connects to. Either way not by a host *name* that is none of
 * `hosts`: its owner can make it point to this host later (DNS rebinding). `origins` may, too.
 */
export function mayBrowse(origin: string | undefined, host: string | undefined, rules: BrowseRules): boolean {
  if (origin === undefined) return true
  if (!URL.canParse(origin) || !URL.canParse(`http://${host}`)) return false
  const page = new URL(origin)
  if (rules.origins.some((allowed) => new URL(allowed).origin === page.origin)) return true
  const here = new URL(`http://${host}`)
  if (rules.hasPassword) return page.hostname === here.hostname && mayAsk(host, rules.hosts)
  return page.host === here.host && mayAsk(page.host, [])
}

export interface BrowseRules {
  readonly hasPassword: boolean
  /** Origins of pages that may always connect. */
  readonly origins: readonly string[]
  /** Names by which it may be reached, besides `localhost` and any address. */
  readonly hosts: readonly string[]
}

/**
 * Destroys `stream` as soon as a packet announces more than `limit` bytes: aedes would collect all of it in memory.
 * It checks what aedes reads, chunk by chunk, and does not read ahead.
 */
export function limitPackets(stream: Duplex, limit: number): void {
  const read = stream.read.bind(stream)
  /** A header that the last chunk ended in. */
  let begun = Buffer.alloc(0)
  /** How much is still to come before the next header. */
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

/** More than a large home retains: a client gets all of that at once when it subscribes. */
const FOR_ONE = 32 * 1024 * 1024
const FOR_ALL = 64 * 1024 * 1024
/** Less is not worth adding up. */
const LITTLE = 1024 * 1024

type Written = (error: Error | null | undefined) => void

/**
 * Keeps a client that does not read from stalling the others. aedes waits for a client to read before it goes on, and with
 * a hundred messages waiting it takes no more from anybody. So it never learns that a client is slow; what waits for a
 * client, and for all `streams` together, is limited instead, and a client beyond the limit is dropped.
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
