/** Handles incoming packets: decodes them, drops echoes of this link's publishes, and queues commands. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { Fifo } from './fifo.ts'
import type { Outbox, OutboxLimits } from './outbox.ts'
import type { Retained } from './retained.ts'
import type { Message, Protocol } from './types.ts'

/** @param receivedAt the earliest time at which the packet may have arrived */
export function decodeMessage(packet: IPublishPacket, connection: number, receivedAt: number): Message {
  const { topic, payload, qos, dup, retain } = packet
  const { responseTopic, correlationData, messageExpiryInterval } = packet.properties ?? {}
  return {
    topic,
    payload: Buffer.isBuffer(payload) ? payload : Buffer.from(payload),
    retain,
    dup,
    qos,
    ...(responseTopic === undefined ? {} : { responseTopic }),
    // Copy the data, because a view would keep the whole network buffer in memory while the answer waits.
    ...(correlationData === undefined ? {} : { correlationData: Buffer.from(correlationData) }),
    ...(messageExpiryInterval === undefined ? {} : { expiresInMs: messageExpiryInterval * 1000 }),
    receivedAt,
    connection,
  }
}

const LIMITS: OutboxLimits = { messages: 10_000, bytes: 8 * 1024 * 1024 }
/** While this many answers wait, new commands are queued. */
const MANY_ANSWERS: OutboxLimits = { messages: 1_000, bytes: 4 * 1024 * 1024 }
/** Messages beyond this multiple of the limits are dropped, because aedes does not wait for acknowledgements. */
const DROP_FACTOR = 5
/** Maximum number of commands per event loop turn. Their answers are queued later, so `#hasRoom` does not see them. */
const AT_ONCE = 64

/**
 * Passes on commands as fast as the broker accepts their answers, which may be a thousand times longer than the
 * commands. If too many commands are waiting, new commands are not acknowledged, so that the broker waits.
 */
export class InboundQueue {
  isFull = false
  dropped = 0
  readonly #answers: Pick<Outbox, 'waiting' | 'bytes'>
  readonly #deliver: (message: Message) => void
  readonly #onDrained: () => void
  readonly #limits: OutboxLimits
  readonly #queue = new Fifo<Message>()
  #bytes = 0
  #resuming = false

  /** @param limits messages beyond these limits are not acknowledged until `onDrained` */
  constructor(
    answers: Pick<Outbox, 'waiting' | 'bytes'>,
    deliver: (message: Message) => void,
    onDrained: () => void,
    limits = LIMITS,
  ) {
    this.#answers = answers
    this.#deliver = deliver
    this.#onDrained = onDrained
    this.#limits = limits
  }

  /** Passes on an urgent message immediately, ahead of the queue. Returns `false` if the message was dropped. */
  take(message: Message, isUrgent = false): boolean {
    if (isUrgent || (this.#queue.size === 0 && this.#hasRoom())) {
      this.#deliver(message)
      return true
    }
    if (this.#exceeds(DROP_FACTOR)) {
      this.dropped += 1
      return false
    }
    // Copy the payload, because a view would keep the whole network buffer in memory.
    this.#queue.push({ ...message, payload: Buffer.from(message.payload) })
    this.#bytes += sizeOf(message)
    this.isFull = this.#exceeds(1)
    this.resume()
    return true
  }

  resume(): void {
    if (this.#resuming || this.#queue.size === 0 || !this.#hasRoom()) return
    this.#resuming = true
    setImmediate(() => {
      this.#resuming = false
      this.#deliverQueued()
    })
  }

  #deliverQueued(): void {
    for (let count = 0; count < AT_ONCE && this.#hasRoom(); count += 1) {
      const message = this.#queue.shift()
      if (message === undefined) break
      this.#bytes -= sizeOf(message)
      this.#deliver(message)
    }
    this.isFull = this.#exceeds(1)
    if (!this.isFull) this.#onDrained()
    this.resume()
  }

  #hasRoom(): boolean {
    return this.#answers.waiting < MANY_ANSWERS.messages && this.#answers.bytes < MANY_ANSWERS.bytes
  }

  #exceeds(factor: number): boolean {
    const { messages, bytes } = this.#limits
    return this.#queue.size >= factor * messages || this.#bytes >= factor * bytes
  }
}

/** Returns an approximate size, because clients choose all of these parts. */
const sizeOf = ({ topic, payload, responseTopic = '', correlationData }: Message) =>
  topic.length + payload.length + responseTopic.length + (correlationData?.length ?? 0)

/** How long to wait for an echo. A broker that discards the publish sends no echo. */
const ECHO_MS = 5_000

/**
 * Recognises echoes of this link's publishes. MQTT 3.1.1 brokers always send echoes; MQTT 5 brokers send them only if
 * they ignore the `nl` (No Local) option.
 */
export function echoFilter(
  clock: Clock,
  retained: Retained,
  isCommand: (topic: string) => boolean,
  isWatched: (topic: string) => boolean,
) {
  /** Maps each topic with a retained message to the last message sent there without the retain flag. */
  const unretained = new Map<string, string>()
  /** Maps the topic of each cleared command to the time until which an echo may arrive. */
  const cleared = new Map<string, number>()
  let protocol: Protocol | undefined
  return {
    /** Forgets the previous connection's publishes, because their echoes do not arrive on the new connection. */
    connected(by: Protocol): void {
      protocol = by
      unretained.clear()
      cleared.clear()
    },

    sending(topic: string, payload: string): void {
      if (retained.concerns(topic)) unretained.set(topic, payload)
    },

    /**
     * Expects the echo of a message that clears a command topic, because it looks like an empty command: clearing a
     * stored `restart` would restart the app. Under MQTT 5, the subscription excludes echoes.
     */
    clearing(topic: string): void {
      if (protocol === '3.1.1' && isCommand(topic)) cleared.set(topic, clock.elapsed() + ECHO_MS)
    },

    /** Returns whether a message is the echo of a clearing message, which has at most one echo. */
    isClearingEcho(topic: string, receivedAt: number): boolean {
      const until = cleared.get(topic)
      cleared.delete(topic)
      return until !== undefined && receivedAt <= until
    },

    /** Returns whether a message on a watched topic is from another client. If so, records the change of the topic. */
    foreign(topic: string, text: string): boolean {
      if (retained.mayBeOwn(topic, text) || unretained.get(topic) === text || !isWatched(topic)) return false
      retained.changedByOthers(topic, text)
      return true
    },
  }
}

export type EchoFilter = ReturnType<typeof echoFilter>
