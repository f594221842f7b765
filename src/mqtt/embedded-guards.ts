/** What the embedded broker checks because aedes does not: the origin of web pages, packet sizes. */
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { mayAsk } from '../base/hosts.ts'

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
  const bare = page.hostname.replace(/^\[(.*)\]$/, '$1')
  return page.host === here.host && (bare === 'localhost' || isIP(bare) !== 0)
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
  const framing = new Framing(limit)
  stream.read = (size?: number) => {
    const chunk: unknown = read(size)
    if (!Buffer.isBuffer(chunk) || !framing.exceeded(chunk)) return chunk
    stream.destroy(new Error('packet too large'))
    return null
  }
}

/** Parses packet headers over chunks cut anywhere: a type byte, the length in one to four bytes, the rest. */
class Framing {
  readonly #limit: number
  #state: 'type' | 'length' | 'rest' = 'type'
  #left = 0
  #shift = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Whether a header in `chunk` announces more than the limit, or a malformed length. */
  exceeded(chunk: Buffer): boolean {
    for (let i = 0; i < chunk.length; ) {
      if (this.#state === 'rest') i += this.#skip(chunk.length - i)
      else if (this.#over(chunk[i++] ?? 0)) return true
    }
    return false
  }

  #skip(available: number): number {
    const skipped = Math.min(this.#left, available)
    this.#left -= skipped
    if (this.#left === 0) this.#state = 'type'
    return skipped
  }

  #over(byte: number): boolean {
    if (this.#state === 'type') {
      this.#state = 'length'
      this.#left = 0
      this.#shift = 0
      return false
    }
    this.#left += (byte & 0x7f) * 2 ** this.#shift
    this.#shift += 7
    if (byte < 0x80) this.#state = this.#left === 0 ? 'type' : 'rest'
    return this.#left > this.#limit || (byte >= 0x80 && this.#shift === 28)
  }
}
