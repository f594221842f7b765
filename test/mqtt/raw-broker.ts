/** A minimal broker, for answers that a real broker does not send. */
import { createServer, type Server, type Socket } from 'node:net'
import { generate, type IConnackPacket, type Packet, parser } from 'mqtt-packet'

export interface RawBrokerOptions {
  /** The reason code of CONNACK under MQTT 5 (default: 0). */
  readonly connack?: number
  /** The properties of CONNACK; default: none. */
  readonly properties?: IConnackPacket['properties']
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

const MQTT_5 = { protocolVersion: 5 }
const MESSAGE = { cmd: 'publish', qos: 0, dup: false, retain: false } as const

/** A broker for MQTT 5, which forwards no messages. */
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

  disconnect(reasonCode: number): void {
    for (const socket of this.#sockets) socket.end(generate({ cmd: 'disconnect', reasonCode }, MQTT_5))
  }

  /** Sends a message that is not retained. */
  send(topic: string, payload: string): void {
    for (const socket of this.#sockets) write(socket, { ...MESSAGE, topic, payload })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    const packets = parser(MQTT_5)
    packets.on('packet', (packet) => this.#answer(socket, packet))
    socket.on('data', (chunk) => packets.parse(chunk))
  }

  #acknowledge(socket: Socket, messageId: number): void {
    this.#unacknowledged += 1
    this.mostUnacknowledged = Math.max(this.mostUnacknowledged, this.#unacknowledged)
    const acknowledge = () => {
      this.#unacknowledged -= 1
      write(socket, { cmd: 'puback', messageId })
    }
    const { ackAfterMs } = this.#options
    if (ackAfterMs === undefined) acknowledge()
    else setTimeout(acknowledge, ackAfterMs)
  }

  #grant(socket: Socket, filter: string, messageId: number): void {
    const { suback = () => 1, retained = () => [], retainedEveryMs = 0 } = this.#options
    const reason = suback(filter)
    const send = ([topic, ...more]: readonly string[]) => {
      if (topic !== undefined) {
        write(socket, { ...MESSAGE, retain: true, topic, payload: 'x' })
        setTimeout(() => send(more), retainedEveryMs)
      } else if (reason !== undefined) write(socket, { cmd: 'suback', messageId, granted: [reason] })
    }
    send(retained(filter))
  }

  #answer(socket: Socket, packet: Packet): void {
    const { connack = 0, properties, echoes = false } = this.#options
    const { messageId = 0 } = packet
    if (packet.cmd === 'connect') {
      this.connects += 1
      write(socket, { cmd: 'connack', sessionPresent: false, reasonCode: connack, ...(properties && { properties }) })
    } else if (packet.cmd === 'publish') {
      this.published.push(packet.topic)
      if (echoes) write(socket, { ...packet, qos: 0 })
      this.#acknowledge(socket, messageId)
    } else if (packet.cmd === 'subscribe') {
      for (const { topic } of packet.subscriptions) {
        this.subscribed.push(topic)
        this.#grant(socket, topic, messageId)
      }
    } else if (packet.cmd === 'unsubscribe') write(socket, { cmd: 'unsuback', messageId, granted: [0] })
    else if (packet.cmd === 'pingreq') write(socket, { cmd: 'pingresp' })
  }
}

const write = (socket: Socket, packet: Packet) => socket.write(generate(packet, MQTT_5))
