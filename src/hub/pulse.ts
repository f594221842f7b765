/** Whether a hub's task is alive: when it last called the hub, well or not, and when it last read the list of apps. */
import type { Clock } from '../base/clock.ts'

/** The longest pause between two calls, apart from the configured intervals: a hub's `Retry-After`. */
const LONGEST_PAUSE_MS = 5 * 60_000
const GRACE_MS = 60_000
/** Calls in a row that one turn of the task may make, each up to the time limit of a call. */
const CALLS_IN_A_TURN = 8

interface Intervals {
  readonly poll_interval: number
  readonly poll_interval_fallback: number
  readonly timeout: number
}

export class Pulse {
  readonly #clock: Clock
  readonly #limit: number
  #callAt: number
  #readAt: number | undefined

  constructor({ poll_interval, poll_interval_fallback, timeout }: Intervals, clock: Clock) {
    this.#clock = clock
    this.#limit =
      Math.max(poll_interval, poll_interval_fallback, LONGEST_PAUSE_MS) + CALLS_IN_A_TURN * timeout + GRACE_MS
    this.#callAt = clock.elapsed()
  }

  /** A call to the hub has ended, however. */
  called({ operation, outcome }: { readonly operation: string; readonly outcome: string }): void {
    this.#callAt = this.#clock.elapsed()
    if (operation === 'getApps' && outcome === 'ok') this.#readAt = this.#callAt
  }

  /** Longer without a call than any pause and time limit explain. */
  get stuck(): boolean {
    return this.#clock.elapsed() - this.#callAt > this.#limit
  }

  /** Wall time of the last good read of the list, in epoch milliseconds. */
  get readAt(): number | undefined {
    return this.#readAt === undefined ? undefined : this.#clock.now() - (this.#clock.elapsed() - this.#readAt)
  }
}
