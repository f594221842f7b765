/** Turns packets into messages, and drops the echoes that MQTT 3.1.1 sends when this link clears a stored command. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { topicMatcher } from './names.ts'
import type { Message } from './types.ts'

/** How long an echo may take: a broker that discards the publish sends none. */
const ECHO_MS = 5_000

export class MessageDecoder {
  readonly #clock: Clock
  readonly #matches: (topic: string) => boolean
  /** Topic to the end of the wait for its echo. */
  readonly #echoes = new Map<string, number>()

  constructor(filters: readonly string[], clock: Clock) {
    this.#clock = clock
    this.#matches = topicMatcher(filters)
  }

  /**
   * Call it before a zero-length publish under MQTT 3.1.1. The publish comes back on a command topic and looks like
   * any empty command: clearing a stored `restart` would restart. (Under MQTT 5 the subscription excludes own publishes.)
   */
  expectEcho(topic: string): void {
    if (this.#matches(topic)) this.#echoes.set(topic, this.#clock.elapsed() + ECHO_MS)
  }

  /** Echoes do not outlive their connection. */
  disconnected(): void {
    this.#echoes.clear()
  }

  /** Whether `topic` belongs to a command. */
  isCommand(topic: string): boolean {
    return this.#matches(topic)
  }

  /** The message in a packet, unless it is an echo. `receivedAt`: when it may have arrived, at the earliest. */
  message(packet: IPublishPacket, connection: number, receivedAt = this.#clock.elapsed()): Message | undefined {
    const { topic, qos, dup, retain } = packet
    const payload = Buffer.isBuffer(packet.payload) ? packet.payload : Buffer.from(packet.payload)
    if (payload.length === 0 && this.#echoes.size > 0) {
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
      // A copy: a view would keep the whole network buffer in memory while the answer waits.
      ...(correlationData === undefined ? {} : { correlationData: Buffer.from(correlationData) }),
      ...(messageExpiryInterval === undefined ? {} : { expiresInMs: messageExpiryInterval * 1000 }),
      receivedAt,
      connection,
    }
  }
}
