/** How a proxy forwards bytes. The values may change at any time. */
export interface Shaping {
  /** The maximum number of bytes forwarded at a time. */
  slice: number
  delayMs: number
}

/** One direction of a proxied connection. Forwards everything in order, delayed or in small pieces. */
export class Lane {
  readonly #shaping: Shaping
  readonly #forward: (chunk: Buffer) => void
  #queue: { chunk: Buffer; dueAt: number }[] = []
  #moving = false
  #onEmpty: (() => void) | undefined

  constructor(shaping: Shaping, forward: (chunk: Buffer) => void) {
    this.#shaping = shaping
    this.#forward = forward
  }

  push(chunk: Buffer): void {
    const { slice, delayMs } = this.#shaping
    if (!this.#moving && delayMs === 0 && slice >= chunk.length) {
      this.#forward(chunk)
      return
    }
    this.#queue.push({ chunk, dueAt: performance.now() + delayMs })
    if (!this.#moving) this.#move()
  }

  /** Calls `done` after all waiting bytes have been forwarded, so that they arrive before the connection is closed. */
  end(done: () => void): void {
    if (this.#moving) this.#onEmpty = done
    else done()
  }

  #move(): void {
    const [head] = this.#queue
    this.#moving = head !== undefined
    if (head === undefined) {
      this.#onEmpty?.()
      return
    }
    const wait = head.dueAt - performance.now()
    if (wait > 0) {
      setTimeout(() => this.#move(), wait)
      return
    }
    const { slice } = this.#shaping
    this.#forward(head.chunk.subarray(0, slice))
    if (head.chunk.length > slice) head.chunk = head.chunk.subarray(slice)
    else this.#queue.shift()
    // Wait for a turn of the event loop, so that the next piece becomes a separate TCP segment.
    setImmediate(() => this.#move())
  }
}
