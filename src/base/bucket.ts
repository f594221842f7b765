/** A token bucket, which allows a burst of `max` actions, and then one action every `everyMs`. */
import type { Clock } from './clock.ts'

interface Rate {
  readonly max: number
  /** Time until one more action is allowed, in milliseconds. */
  readonly everyMs: number
}

export class Bucket {
  readonly #clock: Clock
  readonly #rate: Rate
  /** Number of tokens that were taken and not yet refilled at the time `#at`. */
  #used = 0
  #at: number

  constructor(clock: Clock, rate: Rate) {
    this.#clock = clock
    this.#rate = rate
    this.#at = clock.elapsed()
  }

  /** Returns the delay (ms) until a token can be taken that leaves at least `reserve` tokens; 0 if that is now. */
  wait(reserve = 0): number {
    const { max, everyMs } = this.#rate
    const now = this.#clock.elapsed()
    this.#used = Math.max(0, this.#used - (now - this.#at) / everyMs)
    this.#at = now
    return Math.max(0, Math.ceil((this.#used + 1 + reserve - max) * everyMs))
  }

  take(): void {
    this.#used += 1
  }

  putBack(): void {
    this.#used = Math.max(0, this.#used - 1)
  }
}
