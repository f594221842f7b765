/** Lets one test run at a time, and not too many in a minute: each of them connects to an address that somebody typed. */

import type { Clock } from '../../../base/clock.ts'
import { SetupRefusal } from '../api/setup.ts'

const MAX_IN_A_MINUTE = 20
const MINUTE_MS = 60_000

export class Pace {
  readonly #clock: Clock
  #isBusy = false
  /** When the latest ones began, in `clock.elapsed()` milliseconds. */
  #starts: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws SetupRefusal */
  async run<T>(task: () => Promise<T>): Promise<T> {
    const now = this.#clock.elapsed()
    this.#starts = this.#starts.filter((at) => now - at < MINUTE_MS)
    const [oldest = now] = this.#starts
    if (this.#isBusy) throw new SetupRefusal('busy', 'Another test is running; wait for its end.', 1_000)
    if (this.#starts.length >= MAX_IN_A_MINUTE) {
      throw new SetupRefusal('busy', 'Too many tests in a minute; wait a little.', oldest + MINUTE_MS - now)
    }
    this.#starts.push(now)
    this.#isBusy = true
    try {
      return await task()
    } finally {
      this.#isBusy = false
    }
  }
}
