/** From packets to messages; and the echoes that MQTT 3.1.1 sends of what we clear ourselves. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { topicMatcher } from './names.ts'
import type { Message } from './types.ts'

/** How long an echo is waited for, in milliseconds: a broker that discards the clearing sends none. */
const echoMs = 5_000

export class Inbox {
  readonly #clock: Clock
  readonly #matches: (topic: string) => boolean
  readonly #echoes = new Map<string, number>()

  constructor(filters: readonly string[], clock: Clock) {
    this.#clock = clock
    this.#matches = topicMatcher(filters)
  }

  /**
   * A zero-length publish goes out to `topic`. Under 3.1.1 it comes back on a command topic and looks like any
   * empty command: clearing a stored `restart` would restart. (MQTT 5 is asked not to send our own.)
   */
  expectEcho(topic: string): void {
    if (this.#matches(topic)) this.#echoes.set(topic, this.#clock.elapsed() + echoMs)
  }

  /** Echoes are owed by a connection, and end with it. */
  disconnected(): void {
    this.#echoes.clear()
  }

  /** Whether `topic` is one of commands; all else is ours. */
  owns(topic: string): boolean {
    return this.#matches(topic)
  }

  /** The message in a packet, unless it is an echo. */
  message(packet: IPublishPacket, connection: number): Message | undefined {
    const { topic, qos, dup, retain } = packet
    const payload = Buffer.isBuffer(packet.payload) ? packet.payload : Buffer.from(packet.payload)
    const receivedAt = this.#clock.elapsed()
    if (payload.length === 0 && !retain && this.#echoes.size > 0) {
      const until = this.#echoes.get(topic)
      this.#echoes.delete(topic)
      if (until !== undefined && receivedAt <= until) return undefined
    }
    const { responseTopic, correlationData, messageExpiryInterval } = packet.properties ?? {}
    return {
      topic,
      payload,
      retain,
      dup,
      qos,
      ...(responseTopic === undefined ? {} : { responseTopic }),
      // A copy: answers wait, and with a view of it all that came in with them would stay in memory.
      ...(correlationData === undefined ? {} : { correlationData: Buffer.from(correlationData) }),
      ...(messageExpiryInterval === undefined ? {} : { expiresInMs: messageExpiryInterval * 1000 }),
      receivedAt,
      connection,
    }
  }
}
