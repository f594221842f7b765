/**
 * How long this member may act: from the moment before its latest renewal that succeeded. Two clocks have to agree: one
 * does not count the time for which the machine was suspended.
 */
import type { Clock } from '../base/clock.ts'

/** Of the lease: the rest is for clocks that run at different speeds. */
const USABLE = 0.8

export interface Instant {
  readonly elapsed: number
  readonly uptime: number | undefined
}

export class Lease {
  readonly #clock: Clock
  readonly #usableMs: number
  #from: Instant | undefined

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#usableMs = leaseMs * USABLE
  }

  now(): Instant {
    return { elapsed: this.#clock.elapsed(), uptime: this.#clock.uptime?.() }
  }

  /** A renewal succeeded that began at `from`. */
  renewed(from: Instant): void {
    this.#from = from
  }

  /** It is not this member's any more. */
  lost(): void {
    this.#from = undefined
  }

  get holds(): boolean {
    return this.leftMs > 0
  }

  /** For how long it can be acted upon; 0 when it is over. */
  get leftMs(): number {
    if (this.#from === undefined) return 0
    const { elapsed, uptime } = this.now()
    const age = elapsed - this.#from.elapsed
    const age2 = uptime === undefined || this.#from.uptime === undefined ? age : uptime - this.#from.uptime
    return Math.max(0, this.#usableMs - Math.max(age, age2))
  }
}
