/** Whether something that is only counted has happened lately. */
import type { Clock } from '../base/clock.ts'

/** For so long something counts as recent: time enough to notice it. */
const RECENT_MS = 10 * 60_000

export class Recent {
  readonly #clock: Clock
  #count = 0
  #at = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes the present count, and says whether it has grown in the last ten minutes; ask now and then. */
  grew(count: number): boolean {
    if (count > this.#count) this.#at = this.#clock.elapsed()
    this.#count = count
    return this.#clock.elapsed() - this.#at < RECENT_MS
  }
}
