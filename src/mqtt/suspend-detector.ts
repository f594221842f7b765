/**
 * Detects suspensions of this process, caused for example by a sleeping machine, a paused container or SIGSTOP. After a
 * suspension, arriving messages may be old, until the answer to a newly sent message arrives.
 */
import type { Clock } from '../base/clock.ts'

const TICK_MS = 1_000
/** A shorter gap is not a suspension, because a busy process may miss a tick. */
const MIN_GAP_MS = 2_000
/** After a suspension of at least this length, all messages that arrived before it are outdated. */
const LONG_MS = 10_000

export class SuspendDetector {
  readonly #clock: Clock
  readonly #onSuspended: () => void
  #seen: { readonly elapsed: number; readonly now: number }
  /** The difference between `uptime` and `elapsed`. */
  #ahead: number
  /**
   * The last moment before the suspension, in `clock.elapsed()` milliseconds; `undefined` if no received message can
   * be older than the suspension.
   */
  #since: number | undefined
  #wokeAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  /** @param onSuspended must send a message, and call `ended` when its answer arrives */
  constructor(clock: Clock, onSuspended: () => void) {
    this.#clock = clock
    this.#onSuspended = onSuspended
    this.#seen = { elapsed: clock.elapsed(), now: clock.now() }
    this.#ahead = this.#uptimeAhead()
  }

  /** Starts the detection for a new connection, on which no old messages can arrive yet. */
  start(): void {
    this.stop()
    const tick = () => {
      this.check()
      this.#cancel = this.#clock.after(TICK_MS, tick)
    }
    tick()
    this.#since = undefined
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Call this when all messages that arrive later are new. */
  ended(): void {
    this.#since = undefined
  }

  get isUncertain(): boolean {
    return this.#since !== undefined
  }

  /** Returns the earliest possible arrival time of a message that is read now. */
  arrivedAt(): number {
    this.check()
    return this.#since ?? this.#seen.elapsed
  }

  outdates(arrivedAt: number): boolean {
    this.check()
    return arrivedAt < this.#wokeAt
  }

  check(): void {
    const before = this.#seen
    const [elapsed, now] = [this.#clock.elapsed(), this.#clock.now()]
    this.#seen = { elapsed, now }
    let gap = elapsed - before.elapsed
    // Wall time is cheap to read and includes suspensions, but the system clock may also have been set.
    if (now - before.now >= MIN_GAP_MS) {
      const ahead = this.#uptimeAhead()
      gap += Math.max(0, ahead - this.#ahead)
      this.#ahead = ahead
    }
    if (gap < MIN_GAP_MS) return
    this.#since = Math.min(this.#since ?? Number.POSITIVE_INFINITY, elapsed - gap)
    if (gap >= LONG_MS) this.#wokeAt = elapsed
    if (this.#cancel !== undefined) this.#onSuspended()
  }

  #uptimeAhead(): number {
    const uptime = this.#clock.uptime?.()
    return uptime === undefined ? 0 : uptime - this.#clock.elapsed()
  }
}
