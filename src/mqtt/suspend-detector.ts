/**
 * Notices that this process stood still: a suspended machine, a paused container, SIGSTOP. What a connection brings then
 * may have waited all that time in its socket or at the broker, until something that was sent since has come back.
 */
import type { Clock } from '../base/clock.ts'

const TICK_MS = 1_000
/** A busy process may miss a tick. */
const NOTICED_MS = 2_000
/** What came before a standstill of that length has waited for too long in any case. */
const LONG_MS = 10_000

export class SuspendDetector {
  readonly #clock: Clock
  readonly #onStandstill: () => void
  #seen: { readonly elapsed: number; readonly now: number }
  /** How far `uptime` is ahead of `elapsed`. */
  #ahead: number
  /** The moment before, in `clock.elapsed()` milliseconds, while what arrives may be as old. */
  #since: number | undefined
  /** The end of the last long one. */
  #wokeAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  /** `onStandstill`: something has to be sent to learn when its answer comes; `isOver` when it has. */
  constructor(clock: Clock, onStandstill: () => void) {
    this.#clock = clock
    this.#onStandstill = onStandstill
    this.#seen = { elapsed: clock.elapsed(), now: clock.now() }
    this.#ahead = this.#uptimeAhead()
  }

  /** A connection begins: nothing has waited for it. */
  start(): void {
    this.stop()
    const tick = () => {
      this.look()
      this.#cancel = this.#clock.after(TICK_MS, tick)
    }
    tick()
    this.#since = undefined
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** What arrives from now on is new. */
  isOver(): void {
    this.#since = undefined
  }

  /** Whether what arrives may be old. */
  get lasts(): boolean {
    return this.#since !== undefined
  }

  /** When what arrives now may have arrived, at the earliest. */
  arrivedAt(): number {
    this.look()
    return this.#since ?? this.#seen.elapsed
  }

  /** Whether a long standstill has come since something arrived. */
  outdates(arrivedAt: number): boolean {
    this.look()
    return arrivedAt < this.#wokeAt
  }

  look(): void {
    const before = this.#seen
    const [elapsed, now] = [this.#clock.elapsed(), this.#clock.now()]
    this.#seen = { elapsed, now }
    let gap = elapsed - before.elapsed
    // Wall time is cheap to ask for, and goes on with a suspended machine; but it may also be set.
    if (now - before.now >= NOTICED_MS) {
      const ahead = this.#uptimeAhead()
      gap += Math.max(0, ahead - this.#ahead)
      this.#ahead = ahead
    }
    if (gap < NOTICED_MS) return
    this.#since = Math.min(this.#since ?? Number.POSITIVE_INFINITY, elapsed - gap)
    if (gap >= LONG_MS) this.#wokeAt = elapsed
    if (this.#cancel !== undefined) this.#onStandstill()
  }

  #uptimeAhead(): number {
    const uptime = this.#clock.uptime?.()
    return uptime === undefined ? 0 : uptime - this.#clock.elapsed()
  }
}
