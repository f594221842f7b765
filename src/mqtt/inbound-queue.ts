/**
 * Hands commands on as fast as the broker takes their answers, and keeps the others until then: an answer may be a
 * thousand times as long as its command. When too many wait, they are no longer acknowledged, so that the broker waits.
 */
import { Fifo } from './fifo.ts'
import type { Message } from './types.ts'

export interface IntakeLimits {
  /** Beyond these, messages are not acknowledged any more. */
  readonly messages: number
  readonly bytes: number
}

export interface IntakeOptions {
  /** Whether there is room for another answer. */
  readonly hasRoom: () => boolean
  readonly deliver: (message: Message) => void
  /** Fewer wait again: what was not acknowledged may be. */
  readonly onFew: () => void
  readonly limits?: IntakeLimits
}

const DEFAULT_LIMITS: IntakeLimits = { messages: 10_000, bytes: 8 * 1024 * 1024 }
/** A broker that sends on without acknowledgements, such as aedes, gets messages dropped at so many times the limits. */
const DROP_FACTOR = 5
/** Answers come a moment after their commands: so many are handed on before looking again whether there is room. */
const AT_ONCE = 64

export class InboundQueue {
  readonly #options: Required<IntakeOptions>
  readonly #queue = new Fifo<Message>()
  #bytes = 0
  #dropped = 0
  #resuming = false

  constructor(options: IntakeOptions) {
    this.#options = { limits: DEFAULT_LIMITS, ...options }
  }

  /** Whether so many wait that the broker should send no more. */
  get isFull(): boolean {
    return this.#exceeds(1)
  }

  /** Messages dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Hands a message on, now or later, in order. Returns false if it was dropped. */
  take(message: Message): boolean {
    const { hasRoom, deliver } = this.#options
    if (this.#queue.size === 0 && hasRoom()) {
      deliver(message)
      return true
    }
    if (this.#exceeds(DROP_FACTOR)) {
      this.#dropped += 1
      return false
    }
    // A copy: a view would keep the whole network buffer.
    this.#queue.push({ ...message, payload: Buffer.from(message.payload) })
    this.#bytes += message.payload.length
    this.resume()
    return true
  }

  /** There may be room again. */
  resume(): void {
    if (this.#resuming || this.#queue.size === 0 || !this.#options.hasRoom()) return
    this.#resuming = true
    setImmediate(() => {
      this.#resuming = false
      this.#handOn()
    })
  }

  #handOn(): void {
    const { hasRoom, deliver, onFew } = this.#options
    for (let count = 0; count < AT_ONCE && hasRoom(); count += 1) {
      const message = this.#queue.shift()
      if (message === undefined) break
      this.#bytes -= message.payload.length
      deliver(message)
    }
    if (!this.isFull) onFew()
    this.resume()
  }

  #exceeds(factor: number): boolean {
    const { messages, bytes } = this.#options.limits
    return this.#queue.size >= factor * messages || this.#bytes >= factor * bytes
  }
}
