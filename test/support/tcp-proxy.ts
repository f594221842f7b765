/** A TCP proxy that misbehaves on request: between a client and its broker or hub, to see what a bad network does. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

interface Pair {
  readonly client: Socket
  readonly server: Socket
}

export class TcpProxy implements AsyncDisposable {
  /** Connections accepted so far. */
  accepted = 0
  /** Bytes passed on towards the target so far. */
  sent = 0
  readonly #target: { host: string; port: number }
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
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
    const pair = { client, server }
    this.#pairs.add(pair)
    client.on('data', (chunk) => this.#forward(pair, chunk))
    server.on('data', (chunk) => client.write(chunk))
    client.on('close', () => this.#end(pair, server))
    server.on('close', () => this.#end(pair, client))
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
    this.#pairs.delete(pair)
    other.destroy()
  }
}
