/** Detects whether the task that calls a hub is stuck. */
import type { Clock } from '../base/clock.ts'

/** The longest pause between two calls, except for the configured intervals. It is the maximum `Retry-After`. */
const LONGEST_PAUSE_MS = 5 * 60_000
const GRACE_MS = 60_000
/** Maximum number of consecutive calls in one round of the task. Each call may time out. */
const CALLS_PER_ROUND = 8

type Intervals = Readonly<Record<'poll_interval' | 'poll_interval_fallback' | 'timeout', number>>

export class Pulse {
  readonly #clock: Clock
  readonly #limit: number
  #callAt: number
  #readAt: number | undefined

  constructor({ poll_interval, poll_interval_fallback, timeout }: Intervals, clock: Clock) {
    this.#clock = clock
    this.#limit =
      Math.max(poll_interval, poll_interval_fallback, LONGEST_PAUSE_MS) + CALLS_PER_ROUND * timeout + GRACE_MS
    this.#callAt = clock.elapsed()
  }

  called({ operation, outcome }: { readonly operation: string; readonly outcome: string }): void {
    this.#callAt = this.#clock.elapsed()
    if (operation === 'getApps' && outcome === 'ok') this.#readAt = this.#callAt
  }

  /** Whether the last call was longer ago than pauses and timeouts can explain. */
  get stuck(): boolean {
    return this.#clock.elapsed() - this.#callAt > this.#limit
  }

  /** Time of the last successful read of the list, in epoch milliseconds. */
  get readAt(): number | undefined {
    return this.#readAt === undefined ? undefined : this.#clock.now() - (this.#clock.elapsed() - this.#readAt)
  }
}
