/** A TCP proxy that misbehaves on request: between a client and its broker or hub, to see what a bad network does. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Lane, type Weather } from './tcp-lane.ts'

/** `up`: from the client to the target. */
export type Direction = 'up' | 'down'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  readonly link: ProxiedLink
}

/** One connection, from its acceptance on; for who wants to know afterwards when there was one. */
export interface ProxiedLink {
  /** `Date.now()` of the two ends of its life. */
  readonly openedAt: number
  closedAt?: number
}

export class TcpProxy implements AsyncDisposable {
  /** Connections accepted so far. */
  accepted = 0
  /** Bytes passed on towards the target so far. */
  sent = 0
  /** Every connection that was forwarded, oldest first. */
  readonly links: ProxiedLink[] = []
  readonly #target: { host: string; port: number }
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly #weather: Weather = { slice: Number.POSITIVE_INFINITY, delayMs: 0 }
  readonly #swallowed = new Set<Direction>()
  #paused = false
  #refusing = false
  #cutAt = Number.POSITIVE_INFINITY

  private constructor(target: { host: string; port: number }) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client))
  }

  /** Listens on a free port of 127.0.0.1 and forwards to `port`. */
  static async to(port: number, host = '127.0.0.1'): Promise<TcpProxy> {
    const proxy = new TcpProxy({ host, port })
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections open now. */
  get open(): number {
    return this.#pairs.size
  }

  /** Forwards nothing any more, in both directions, but keeps every connection: a hung peer. */
  pause(): void {
    this.#paused = true
    for (const { client, server } of this.#pairs) {
      client.pause()
      server.pause()
    }
  }

  resume(): void {
    this.#paused = false
    for (const { client, server } of this.#pairs) {
      client.resume()
      server.resume()
    }
  }

  /** Ends every connection with a TCP reset on both sides. */
  reset(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
  }

  /** Resets as soon as so many more bytes have been passed on towards the target, in the middle of whatever it is. */
  cutAfter(bytes: number): void {
    this.#cutAt = this.sent + bytes
  }

  /** Whether new connections are closed as soon as they are made. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing
  }

  /** Forwards at most so many bytes at a time; without a number, as they come. */
  slice(bytes = Number.POSITIVE_INFINITY): void {
    this.#weather.slice = Math.max(1, bytes)
  }

  /** Forwards everything so much later, in order. */
  delay(ms: number): void {
    this.#weather.delayMs = ms
  }

  /** What goes that way vanishes though both ends are open: such a connection is of no use any more, only to be reset. */
  swallow(direction: Direction): void {
    this.#swallowed.add(direction)
  }

  /** Forwards again as if nothing had been asked for; connections that have lost bytes are reset. */
  heal(): void {
    const lossy = this.#swallowed.size > 0
    this.#swallowed.clear()
    this.slice()
    this.delay(0)
    this.refuse(false)
    this.#cutAt = Number.POSITIVE_INFINITY
    this.resume()
    if (lossy) this.reset()
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.reset()
    await closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #accept(client: Socket): void {
    this.accepted += 1
    client.on('error', () => undefined)
    if (this.#refusing) {
      client.destroy()
      return
    }
    const server = connect({ ...this.#target, noDelay: true })
    server.on('error', () => undefined)
    const link: ProxiedLink = { openedAt: Date.now() }
    this.links.push(link)
    const pair = { client, server, link }
    this.#pairs.add(pair)
    const up = new Lane(this.#weather, (chunk) => this.#forward(pair, chunk))
    const down = new Lane(this.#weather, (chunk) => client.write(chunk))
    client.on('data', (chunk) => this.#swallowed.has('up') || up.push(chunk))
    server.on('data', (chunk) => this.#swallowed.has('down') || down.push(chunk))
    client.on('close', () => this.#end(pair, server))
    server.on('close', () => down.end(() => this.#end(pair, client)))
    if (this.#paused) {
      client.pause()
      server.pause()
    }
  }

  #forward({ server }: Pair, chunk: Buffer): void {
    const room = this.#cutAt - this.sent
    this.sent += Math.min(chunk.length, room)
    if (chunk.length < room) {
      server.write(chunk)
      return
    }
    this.#cutAt = Number.POSITIVE_INFINITY
    server.write(chunk.subarray(0, room), () => this.reset())
  }

  #end(pair: Pair, other: Socket): void {
    if (this.#pairs.delete(pair)) pair.link.closedAt = Date.now()
    other.destroy()
  }
}
