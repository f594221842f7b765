/** An ordinary client connected to the broker directly: writes down all messages, sends, and comes back when the broker does. */
import { randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { type IClientPublishOptions, type IPublishPacket, MqttClient } from 'mqtt'
import type { Seen } from './history.ts'

export interface Login {
  readonly username: string
  readonly password: string
}

const RETRY_MS = 25

export class Watcher implements AsyncDisposable {
  /** Live and stored messages since the last `forget`, in the order of their arrival. */
  seen: Seen[] = []
  /** What the broker refused or lost of what was sent. */
  failed = 0
  readonly #port: number
  readonly #login: Login
  readonly #listeners = new Set<(seen: Seen) => void>()
  #client: MqttClient | undefined
  #subscribed = false
  #ended = false

  constructor(port: number, login: Login) {
    this.#port = port
    this.#login = login
    this.#connect()
  }

  get ready(): boolean {
    return this.#subscribed
  }

  listen(listener: (seen: Seen) => void): void {
    this.#listeners.add(listener)
  }

  forget(): void {
    this.seen = []
  }

  /** Whether the broker has acknowledged it within two seconds. It is sent once, whatever happens. */
  publish(topic: string, payload: string | Buffer, options: IClientPublishOptions = {}): Promise<boolean> {
    const client = this.#client
    if (client === undefined || !this.#subscribed) return Promise.resolve(false)
    return new Promise((resolve) => {
      const done = (ok: boolean) => {
        clearTimeout(timer)
        client.off('close', lost)
        if (!ok) this.failed += 1
        resolve(ok)
      }
      const lost = () => done(false)
      const timer = setTimeout(lost, 2000)
      client.once('close', lost)
      client.publish(topic, payload, { qos: 1, ...options }, (error) => done(!error))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    await new Promise<void>((resolve) => {
      if (this.#client === undefined) resolve()
      else this.#client.end(true, () => resolve())
    })
  }

  #connect(): void {
    if (this.#ended) return
    const client = new MqttClient(() => connectTcp({ port: this.#port, host: '127.0.0.1', noDelay: true }), {
      ...this.#login,
      clientId: `watcher-${randomBytes(6).toString('hex')}`,
      protocolVersion: 5,
      reconnectPeriod: 0,
      keepalive: 0,
      properties: { sessionExpiryInterval: 0, receiveMaximum: 65_535 },
      log: () => undefined,
    })
    client.setMaxListeners(0)
    this.#client = client
    client.on('error', () => undefined)
    client.on('connect', () => {
      client.subscribe('#', { qos: 1, rap: true }, (error) => {
        this.#subscribed = !error
      })
    })
    client.on('message', (topic, payload, packet) => this.#take(topic, payload, packet))
    client.once('close', () => {
      this.#subscribed = false
      client.end(true)
      setTimeout(() => this.#connect(), RETRY_MS)
    })
  }

  #take(topic: string, payload: Buffer, { retain, properties }: IPublishPacket): void {
    const token = properties?.correlationData?.toString()
    const seen: Seen = { at: Date.now(), topic, text: payload.toString(), retain, token }
    this.seen.push(seen)
    for (const listener of this.#listeners) listener(seen)
  }
}
