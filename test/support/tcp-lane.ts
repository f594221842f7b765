/** How a proxy treats bytes on their way; may change while they are. */
export interface Weather {
  /** Bytes forwarded at a time, at most. */
  slice: number
  delayMs: number
}

/** One direction of a proxied connection: everything in order, late or in crumbs as the weather wants it. */
export class Lane {
  readonly #weather: Weather
  readonly #forward: (chunk: Buffer) => void
  #queue: { chunk: Buffer; dueAt: number }[] = []
  #moving = false
  #onEmpty: (() => void) | undefined

  constructor(weather: Weather, forward: (chunk: Buffer) => void) {
    this.#weather = weather
    this.#forward = forward
  }

  push(chunk: Buffer): void {
    const { slice, delayMs } = this.#weather
    // The common case, and the fast one.
    if (!this.#moving && delayMs === 0 && slice >= chunk.length) {
      this.#forward(chunk)
      return
    }
    this.#queue.push({ chunk, dueAt: performance.now() + delayMs })
    if (!this.#moving) this.#move()
  }

  /** Calls `done` when all that waits has been forwarded: what was sent before a goodbye arrives before it. */
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
    const { slice } = this.#weather
    this.#forward(head.chunk.subarray(0, slice))
    if (head.chunk.length > slice) head.chunk = head.chunk.subarray(slice)
    else this.#queue.shift()
    // A turn of the event loop between two crumbs makes them two segments on the wire.
    setImmediate(() => this.#move())
  }
}
