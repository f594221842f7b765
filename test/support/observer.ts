import { randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { type IClientPublishOptions, type IPublishPacket, MqttClient } from 'mqtt'
import { until } from './until.ts'

export interface Login {
  readonly username: string
  readonly password: string
}

export interface Seen {
  /** The time at which the message arrived, in epoch milliseconds. */
  readonly at: number
  readonly topic: string
  readonly text: string
  readonly retain: boolean
  readonly packet: IPublishPacket
}

export interface ObserverOptions extends Partial<Login> {
  /** The version of MQTT; default: 3.1.1. */
  readonly protocol?: '5' | '3.1.1'
  /** The topic filters of the subscription; default: `#`. */
  readonly filter?: string | readonly string[]
  /** The QoS of the subscription; default: 1. */
  readonly qos?: 0 | 1
  /** Whether live messages keep their retain flag (MQTT 5). */
  readonly retainAsPublished?: boolean
  /** Whether to reconnect after each loss. With MQTT 5, the client then requests no retained messages again. */
  readonly reconnects?: boolean
  readonly onMessage?: (seen: Seen) => void
  /** Whether to keep messages in `seen`; default: `true`. */
  readonly keeps?: boolean
}

const RETRY_MS = 25
const closed = () => new Error('the broker closed the connection')

/** An ordinary MQTT client that records the messages that it receives. */
export class Observer implements AsyncDisposable {
  seen: Seen[] = []
  readonly #port: number
  readonly #options: ObserverOptions
  #client: MqttClient | undefined
  #ready = false
  #hasReconnected = false
  #ended = false

  private constructor(port: number, options: ObserverOptions) {
    this.#port = port
    this.#options = options
  }

  /** Resolves when the client is subscribed; retained messages follow. */
  static async on(port: number, options: ObserverOptions = {}): Promise<Observer> {
    await using open = new AsyncDisposableStack()
    const observer = open.use(new Observer(port, options))
    await observer.#connect()
    open.move()
    return observer
  }

  get ready(): boolean {
    return this.#ready
  }

  forget(): void {
    this.seen = []
  }

  texts(topic: string): string[] {
    return this.seen.filter((seen) => seen.topic === topic).map(({ text }) => text)
  }

  last(topic: string): string | undefined {
    return this.seen.findLast((seen) => seen.topic === topic)?.text
  }

  /** Waits for a condition; the error contains the condition's name and the latest messages. */
  until<T>(what: string, probe: () => T | undefined | false | null, ms?: number): Promise<T> {
    return until(what, probe, ms).catch((error: Error) => {
      const last = this.seen.slice(-5).map(({ topic, text }) => `  ${topic} ${text.slice(0, 200)}`)
      throw new Error(`${error.message}; latest messages:\n${last.join('\n')}`, { cause: error })
    })
  }

  /** Publishes once, without retries. Resolves when acknowledged; rejects if the connection is missing or lost. */
  publish(topic: string, text: string | Buffer, options: IClientPublishOptions = {}): Promise<void> {
    const client = this.#client
    if (client === undefined || !this.#ready) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const lost = () => reject(closed())
      client.once('close', lost)
      client.publish(topic, text, { qos: 1, ...options }, (error) => {
        client.off('close', lost)
        if (error) reject(error)
        else resolve()
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    await this.#client?.endAsync(true)
  }

  async #connect(): Promise<void> {
    const { protocol = '3.1.1', filter = '#', qos = 1, retainAsPublished: rap, username, password } = this.#options
    // After a reconnect, do not request retained messages: with `rap`, they would look like new messages.
    const rh = this.#hasReconnected ? { rh: 2 } : {}
    const client = new MqttClient(() => connectTcp({ port: this.#port, host: '127.0.0.1', noDelay: true }), {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      clientId: `observer-${randomBytes(6).toString('hex')}`,
      protocolVersion: protocol === '5' ? 5 : 4,
      reconnectPeriod: 0,
      // Disable the keep-alive, so that the connection survives a broker that hangs.
      keepalive: 0,
    })
    // Allow any number of listeners, because each pending publish adds one for the end of the connection.
    client.setMaxListeners(0)
    this.#client = client
    client.on('message', (topic, payload, packet) => this.#take(topic, payload, packet))
    client.once('close', () => this.#lost(client))
    await new Promise<void>((resolve, reject) => {
      client.on('error', reject)
      client.once('close', () => reject(closed()))
      client.once('connect', () => {
        client.subscribe([...[filter].flat()], { qos, ...(rap !== undefined && { rap }), ...rh }, (error) => {
          if (!error) return resolve()
          reject(error)
          // Reconnect and subscribe again, because a cluster that has lost a node refuses subscriptions for some time.
          client.stream.destroy()
        })
      })
    })
    this.#ready = true
  }

  #lost(client: MqttClient): void {
    this.#ready = false
    client.end(true)
    if (!this.#options.reconnects || this.#ended) return
    this.#hasReconnected = true
    setTimeout(() => {
      // A failure closes the connection, which calls `#lost` again.
      if (!this.#ended) this.#connect().catch(() => undefined)
    }, RETRY_MS)
  }

  #take(topic: string, payload: Buffer, packet: IPublishPacket): void {
    const seen: Seen = { at: Date.now(), topic, text: payload.toString(), retain: packet.retain, packet }
    if (this.#options.keeps !== false) this.seen.push(seen)
    this.#options.onMessage?.(seen)
  }
}

/** Returns the payload of each retained message of a broker, by topic. Leaves out `$SYS`. */
export async function retainedOn(port: number, options: ObserverOptions = {}): Promise<Map<string, string>> {
  await using observer = await Observer.on(port, options)
  const marker = `marker-${randomBytes(6).toString('hex')}`
  // In aedes, live messages overtake retained messages, so wait for three rounds without a retained message.
  for (let round = 0, quiet = 0, before = -1; quiet < 3; round += 1) {
    await observer.publish(marker, String(round))
    await until('the marker', () => observer.last(marker) === String(round))
    const found = observer.seen.filter(({ retain }) => retain).length
    quiet = found === before ? quiet + 1 : 0
    before = found
  }
  return new Map(observer.seen.filter(({ retain }) => retain).map(({ topic, text }) => [topic, text]))
}
