/** How often something may be done: so many times at once, and once more each time that so long has passed. */
import type { Clock } from './clock.ts'

interface Rate {
  /** At once. */
  readonly most: number
  /** Until one more is possible, in milliseconds. */
  readonly everyMs: number
}

export class Bucket {
  readonly #clock: Clock
  readonly #rate: Rate
  /** How many are used up, which fades with time. */
  #used = 0
  #at: number

  constructor(clock: Clock, rate: Rate) {
    this.#clock = clock
    this.#rate = rate
    this.#at = clock.elapsed()
  }

  /** For how many milliseconds none may be taken, if so many are to be left then; 0: one may be. */
  wait(left = 0): number {
    const { most, everyMs } = this.#rate
    const now = this.#clock.elapsed()
    this.#used = Math.max(0, this.#used - (now - this.#at) / everyMs)
    this.#at = now
    return Math.max(0, Math.ceil((this.#used + 1 + left - most) * everyMs))
  }

  take(): void {
    this.#used += 1
  }

  putBack(): void {
    this.#used = Math.max(0, this.#used - 1)
  }
}
