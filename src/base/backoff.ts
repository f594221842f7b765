/**
 * How long to wait before the next attempt: exponential backoff with full jitter, capped, without a limit of attempts.
 */

interface BackoffOptions {
  /** Upper bound of the first wait, in milliseconds. */
  readonly min: number
  /** Upper bound of every later wait. */
  readonly max: number
  /** Returns a number in [0, 1). */
  readonly random: () => number
}

/**
 * Full jitter spreads the clients of a hub or broker that comes back over the whole interval. The minimum of a tenth
 * prevents a hot loop.
 */
export class Backoff {
  readonly #options: BackoffOptions
  #ceiling: number

  constructor(options: BackoffOptions) {
    this.#options = options
    this.#ceiling = options.min
  }

  /** The next wait in milliseconds, between a tenth of the current ceiling and the ceiling. */
  next(): number {
    const ceiling = this.#ceiling
    this.#ceiling = Math.min(this.#options.max, ceiling * 2)
    return Math.round(ceiling * (0.1 + 0.9 * this.#options.random()))
  }

  /** Call after success, so that the next failure starts with a short wait. */
  reset(): void {
    this.#ceiling = this.#options.min
  }
}
