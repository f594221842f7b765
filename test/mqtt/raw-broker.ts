/** A minimal broker, for answers that a real broker does not send. */
import { createServer, type Server, type Socket } from 'node:net'

export interface RawBrokerOptions {
  /** The reason code of CONNACK under MQTT 5 (default: 0). */
  readonly connack?: number
  /** The properties of CONNACK as bytes; default: none. */
  readonly properties?: readonly number[]
  /** Whether each publisher receives its own messages. */
  readonly echoes?: boolean
  /** The delay of each PUBACK; default: none. */
  readonly ackAfterMs?: number
  /** Returns the reason code of SUBACK for a filter (default: 1), or `undefined` for no answer. */
  readonly suback?: (filter: string) => number | undefined
  /** Returns retained topics for a filter (default: none), sent before the SUBACK, one every `retainedEveryMs`. */
  readonly retained?: (filter: string) => readonly string[]
  readonly retainedEveryMs?: number
}

/** A broker for MQTT 5. It reads one or more packets per chunk, and forwards no messages. */
export class RawBroker implements AsyncDisposable {
  connects = 0
  mostUnacknowledged = 0
  #unacknowledged = 0
  readonly subscribed: string[] = []
  readonly published: string[] = []
  readonly #options: RawBrokerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(options: RawBrokerOptions) {
    this.#options = options
    this.#server = createServer({ noDelay: true }, (socket) => this.#serve(socket))
  }

  static async start(options: RawBrokerOptions = {}): Promise<RawBroker> {
    const broker = new RawBroker(options)
    await new Promise<void>((resolve) => broker.#server.listen(0, '127.0.0.1', resolve))
    return broker
  }

  get url(): string {
    const address = this.#server.address()
    return `mqtt://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  }

  disconnect(reason: number): void {
    for (const socket of this.#sockets) socket.end(Buffer.from([0xe0, 2, reason, 0]))
  }

  /** Sends a message that is not retained. */
  send(topic: string, text: string): void {
    const body = [0, topic.length, ...Buffer.from(topic), 0, ...Buffer.from(text)]
    for (const socket of this.#sockets) socket.write(Buffer.from([0x30, body.length, ...body]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    let pending = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk])
      // Lengths must be under 16,384, which two bytes can encode.
      while (pending.length >= 3) {
        const long = (pending[1] ?? 0) >= 0x80
        const length = ((pending[1] ?? 0) & 0x7f) + (long ? (pending[2] ?? 0) << 7 : 0)
        const start = long ? 3 : 2
        if (pending.length < start + length) return
        this.#answer(socket, (pending[0] ?? 0) >> 4, pending.subarray(start, start + length))
        pending = pending.subarray(start + length)
      }
    })
  }

  #acknowledge(socket: Socket, id: readonly number[]): void {
    this.#unacknowledged += 1
    this.mostUnacknowledged = Math.max(this.mostUnacknowledged, this.#unacknowledged)
    const acknowledge = () => {
      this.#unacknowledged -= 1
      socket.write(Buffer.from([0x40, 2, ...id]))
    }
    const { ackAfterMs } = this.#options
    if (ackAfterMs === undefined) acknowledge()
    else setTimeout(acknowledge, ackAfterMs)
  }

  #grant(socket: Socket, filter: string, id: readonly number[]): void {
    const { suback = () => 1, retained = () => [], retainedEveryMs = 0 } = this.#options
    const reason = suback(filter)
    const send = ([topic, ...more]: readonly string[]) => {
      if (topic !== undefined) {
        const name = Buffer.from(topic)
        socket.write(Buffer.from([0x31, name.length + 4, 0, name.length, ...name, 0, 0x78]))
        setTimeout(() => send(more), retainedEveryMs)
      } else if (reason !== undefined) socket.write(Buffer.from([0x90, 4, ...id, 0, reason]))
    }
    send(retained(filter))
  }

  #answer(socket: Socket, type: number, body: Buffer): void {
    const { connack = 0, properties = [], echoes = false } = this.#options
    switch (type) {
      case 1:
        this.connects += 1
        socket.write(Buffer.from([0x20, 3 + properties.length, 0, connack, properties.length, ...properties]))
        return
      case 3: {
        const end = 2 + body.readUInt16BE(0)
        this.published.push(body.toString('utf8', 2, end))
        if (echoes)
          socket.write(
            Buffer.concat([Buffer.from([0x30, body.length - 2]), body.subarray(0, end), body.subarray(end + 2)]),
          )
        this.#acknowledge(socket, [body[end] ?? 0, body[end + 1] ?? 0])
        return
      }
      case 8: {
        const filter = body.toString('utf8', 5, 5 + body.readUInt16BE(3))
        this.subscribed.push(filter)
        this.#grant(socket, filter, [body[0] ?? 0, body[1] ?? 0])
        return
      }
      case 10:
        socket.write(Buffer.from([0xb0, 4, body[0] ?? 0, body[1] ?? 0, 0, 0]))
        return
      case 12:
        socket.write(Buffer.from([0xd0, 0]))
    }
  }
}
