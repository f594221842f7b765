/**
 * Hands commands on as fast as the broker takes their answers, and keeps the others until then: an answer may be a
 * thousand times as long as its command. When too many wait, they are no longer acknowledged, so that the broker waits.
 */
import { Fifo } from './fifo.ts'
import type { Outbox } from './outbox.ts'
import type { Message } from './types.ts'

interface Limits {
  readonly messages: number
  readonly bytes: number
}

export interface InboundQueueOptions {
  /** Those that wait to be sent. */
  readonly answers: Pick<Outbox, 'waiting' | 'bytes'>
  readonly deliver: (message: Message) => void
  /** The queue has drained: what was not acknowledged may be. */
  readonly onDrained: () => void
  /** Beyond these, messages are not acknowledged any more. */
  readonly limits?: Limits
}

const LIMITS: Limits = { messages: 10_000, bytes: 8 * 1024 * 1024 }
/** While so many answers wait, further commands do. */
const MANY_ANSWERS: Limits = { messages: 1_000, bytes: 4 * 1024 * 1024 }
/** A broker that sends on without acknowledgements, such as aedes, gets messages dropped at so many times the limits. */
const DROP_FACTOR = 5
/** Answers come a moment after their commands: so many are handed on before looking again whether there is room. */
const AT_ONCE = 64

export class InboundQueue {
  /** Whether so many wait that the broker should send no more. */
  isFull = false
  /** Messages dropped so far. */
  dropped = 0
  readonly #options: InboundQueueOptions
  readonly #queue = new Fifo<Message>()
  #bytes = 0
  #resuming = false

  constructor(options: InboundQueueOptions) {
    this.#options = options
  }

  /** Hands a message on, now or later, in order. Returns false if it was dropped. */
  take(message: Message): boolean {
    if (this.#queue.size === 0 && this.#hasRoom()) {
      this.#options.deliver(message)
      return true
    }
    if (this.#exceeds(DROP_FACTOR)) {
      this.dropped += 1
      return false
    }
    // A copy: a view would keep the whole network buffer.
    this.#queue.push({ ...message, payload: Buffer.from(message.payload) })
    this.#bytes += message.payload.length
    this.isFull = this.#exceeds(1)
    this.resume()
    return true
  }

  /** There may be room again. */
  resume(): void {
    if (this.#resuming || this.#queue.size === 0 || !this.#hasRoom()) return
    this.#resuming = true
    setImmediate(() => {
      this.#resuming = false
      this.#handOn()
    })
  }

  #handOn(): void {
    const { deliver, onDrained } = this.#options
    for (let count = 0; count < AT_ONCE && this.#hasRoom(); count += 1) {
      const message = this.#queue.shift()
      if (message === undefined) break
      this.#bytes -= message.payload.length
      deliver(message)
    }
    this.isFull = this.#exceeds(1)
    if (!this.isFull) onDrained()
    this.resume()
  }

  #hasRoom(): boolean {
    const { answers } = this.#options
    return answers.waiting < MANY_ANSWERS.messages && answers.bytes < MANY_ANSWERS.bytes
  }

  #exceeds(factor: number): boolean {
    const { messages, bytes } = this.#options.limits ?? LIMITS
    return this.#queue.size >= factor * messages || this.#bytes >= factor * bytes
  }
}
