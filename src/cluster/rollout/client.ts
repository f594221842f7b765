/** What a rollout needs of a connection: to read what is retained, to listen to single topics, and to publish. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../../base/clock.ts'
import type { Connection } from '../../mqtt/connection.ts'
import { ReadBack } from '../../mqtt/readback.ts'

/** The broker does not take what is published, or does not grant what is subscribed; the message says what. */
export class DeniedError extends Error {
  override readonly name = 'DeniedError'
}

/** `from`: this process gave the answer itself, or the broker passed the message on, from any client. */
type Listener = (text: string, from: 'process' | 'broker') => void

/** Fixed header, topic length, packet id and properties: more than any packet of ours has besides topic and payload. */
const PACKET_OVERHEAD = 64
/** How long the broker may take to give back what it holds. */
const READ_MS = 10_000

export class Client {
  readonly #connection: Connection
  readonly #probeTopic: string
  readonly #clock: Clock
  readonly #listeners = new Map<string, Listener>()
  #reading: ReadBack | undefined

  constructor(connection: Connection, { probeTopic, clock }: { readonly probeTopic: string; readonly clock: Clock }) {
    this.#connection = connection
    this.#probeTopic = probeTopic
    this.#clock = clock
  }

  /** Call it with each message. */
  received(packet: IPublishPacket): void {
    const listener = this.#listeners.get(packet.topic)
    if (listener === undefined) this.#reading?.received(packet)
    else listener(packet.payload.toString(), 'broker')
  }

  /** This process has answered a command on its result topic. */
  answered(topic: string, text: () => string): void {
    this.#listeners.get(topic)?.(text(), 'process')
  }

  /** Hands over what is retained below these filters. @throws DeniedError */
  async read(filters: readonly string[], onFound: (topic: string, text: string) => void): Promise<void> {
    const refused: string[] = []
    const reading = new ReadBack(this.#connection, {
      heldFilters: filters,
      probeTopic: this.#probeTopic,
      clock: this.#clock,
      timeoutMs: READ_MS,
      subscribe: async (filter, qos) => {
        const granted = await this.#connection.subscribe(filter, { qos })
        if (!granted) refused.push(filter)
        return granted
      },
      onFound,
    })
    this.#reading = reading
    const { probe } = await reading.run()
    this.#reading = undefined
    if (probe === 'ok' && refused.length === 0) return
    throw new DeniedError(`the broker does not let this user read ${refused[0] ?? this.#probeTopic}`)
  }

  /** Listens to a topic until the returned function is called; what is retained there comes first. @throws DeniedError */
  async listen(topic: string, listener: Listener): Promise<() => void> {
    this.#listeners.set(topic, listener)
    if (!(await this.#connection.subscribe(topic, { qos: 1 }))) {
      this.#listeners.delete(topic)
      throw new DeniedError(`the broker does not let this user read ${topic}`)
    }
    return () => {
      this.#listeners.delete(topic)
      this.#connection.unsubscribe([topic])
    }
  }

  /** Resolves when the broker has it; never if the connection ends first. @throws DeniedError */
  async publish(
    topic: string,
    payload: string,
    { retain = false, expirySeconds }: { readonly retain?: boolean; readonly expirySeconds?: number } = {},
  ): Promise<void> {
    const { protocol, maximumPacketSize } = this.#connection
    if (Buffer.byteLength(payload) + Buffer.byteLength(topic) + PACKET_OVERHEAD > maximumPacketSize) {
      throw new DeniedError(`${topic} would be larger than the broker takes`)
    }
    const { promise, resolve } = Promise.withResolvers<number>()
    const expires = protocol === '5' && expirySeconds !== undefined
    const more = expires ? { properties: { messageExpiryInterval: expirySeconds } } : {}
    this.#connection.publish(topic, payload, { qos: 1, retain, ...more }, resolve)
    const reason = await promise
    if (reason !== 0) throw new DeniedError(`the broker does not take ${topic} (reason ${reason})`)
  }
}
