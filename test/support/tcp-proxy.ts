/** A TCP proxy between a client and its broker or hub that simulates network faults. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Lane, type Shaping } from './tcp-lane.ts'

/** `up` is the direction from the client to the target. */
export type Direction = 'up' | 'down'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  readonly link: ProxiedLink
}

export interface ProxiedLink {
  /** The time at which the connection was opened, in epoch milliseconds. */
  readonly openedAt: number
  closedAt?: number
}

export class TcpProxy implements AsyncDisposable {
  accepted = 0
  /** The number of bytes forwarded to the target so far. */
  sent = 0
  readonly links: ProxiedLink[] = []
  readonly #target: number
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly #shaping: Shaping = { slice: Number.POSITIVE_INFINITY, delayMs: 0 }
  readonly #swallowed = new Set<Direction>()
  #paused = false
  #refusing = false
  #cutAt = Number.POSITIVE_INFINITY

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client))
  }

  static async to(port: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get open(): number {
    return this.#pairs.size
  }

  /** Stops forwarding in both directions but keeps all connections open, like a peer that hangs. */
  pause(): void {
    this.#paused = true
    for (const socket of this.#sockets()) socket.pause()
  }

  resume(): void {
    this.#paused = false
    for (const socket of this.#sockets()) socket.resume()
  }

  /** Closes every connection with a TCP reset on both sides. */
  reset(): void {
    for (const socket of this.#sockets()) socket.resetAndDestroy()
  }

  /** Resets all connections after this many more bytes to the target, even in the middle of a packet. */
  cutAfter(bytes: number): void {
    this.#cutAt = this.sent + bytes
  }

  refuse(refusing: boolean): void {
    this.#refusing = refusing
  }

  /** Resets all connections, and refuses new ones. */
  cut(): void {
    this.refuse(true)
    this.reset()
  }

  /** Forwards at most this many bytes at a time; default: no limit. */
  slice(bytes = Number.POSITIVE_INFINITY): void {
    this.#shaping.slice = Math.max(1, bytes)
  }

  /** Delays all bytes, and keeps their order. */
  delay(ms: number): void {
    this.#shaping.delayMs = ms
  }

  /** Discards all bytes in one direction while both ends stay open; `heal` resets such connections. */
  swallow(direction: Direction): void {
    this.#swallowed.add(direction)
  }

  /** Ends all faults; resets connections that have lost bytes. */
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

  #sockets(): Socket[] {
    return [...this.#pairs].flatMap(({ client, server }) => [client, server])
  }

  #accept(client: Socket): void {
    this.accepted += 1
    client.on('error', () => undefined)
    if (this.#refusing) {
      client.destroy()
      return
    }
    const server = connect({ host: '127.0.0.1', port: this.#target, noDelay: true })
    server.on('error', () => undefined)
    const link: ProxiedLink = { openedAt: Date.now() }
    this.links.push(link)
    const pair = { client, server, link }
    this.#pairs.add(pair)
    const up = new Lane(this.#shaping, (chunk) => this.#forward(pair, chunk))
    const down = new Lane(this.#shaping, (chunk) => client.write(chunk))
    client.on('data', (chunk) => this.#swallowed.has('up') || up.push(chunk))
    server.on('data', (chunk) => this.#swallowed.has('down') || down.push(chunk))
    client.on('close', () => this.#end(pair, server))
    server.on('close', () => down.end(() => this.#end(pair, client)))
    if (this.#paused) this.pause()
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
