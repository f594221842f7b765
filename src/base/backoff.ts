/** How long to wait before the next attempt: exponential with full jitter, capped, never giving up. */

/**
 * Full jitter spreads the clients of a hub or broker that comes back over the whole interval; the floor of a tenth
 * keeps a lucky draw from becoming a hot loop.
 */
export class Backoff {
  readonly #min: number
  readonly #max: number
  readonly #random: () => number
  #ceiling: number

  /**
   * @param min ceiling of the first wait, in milliseconds
   * @param max ceiling of every later wait
   * @param random returns a number in [0, 1)
   */
  constructor({
    min,
    max,
    random = Math.random,
  }: {
    readonly min: number
    readonly max: number
    readonly random?: () => number
  }) {
    this.#min = min
    this.#max = max
    this.#random = random
    this.#ceiling = min
  }

  /** The next wait in milliseconds, between a tenth of the current ceiling and the ceiling. */
  next(): number {
    const ceiling = this.#ceiling
    this.#ceiling = Math.min(this.#max, ceiling * 2)
    return Math.round(ceiling * (0.1 + 0.9 * this.#random()))
  }

  /** Call after success, so that the next failure starts small again. */
  reset(): void {
    this.#ceiling = this.#min
  }
}
