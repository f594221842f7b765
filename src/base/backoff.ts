/** Determines the pauses between attempts, with exponential backoff and full jitter. */

interface BackoffOptions {
  /** Upper bound for the first pause, in milliseconds. */
  readonly min: number
  /** Upper bound for every later pause, in milliseconds. */
  readonly max: number
  /** Returns a number in [0, 1). */
  readonly random: () => number
}

/**
 * Full jitter prevents all clients from reconnecting at the same moment when a hub or broker is back. The minimum, a
 * tenth of the upper bound, prevents a hot loop.
 */
export class Backoff {
  readonly #options: BackoffOptions
  #ceiling: number

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#ceiling = options.min
  }

  /** Returns the next pause, in milliseconds. */
  next(): number {
    const ceiling = this.#ceiling
    this.#ceiling = Math.min(this.#options.max, ceiling * 2)
    return Math.round(ceiling * (0.1 + 0.9 * this.#options.random()))
  }

  /** Call this after a success, so that the next pause is short. */
  reset(): void {
    this.#ceiling = this.#options.min
  }
}
