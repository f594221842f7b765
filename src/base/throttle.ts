/** Does one thing again and again without taking up all the time: at once where that is cheap, rarely where it is not. */
import type { Clock } from './clock.ts'

/** What takes less is done whenever it is asked for. */
const CHEAP_MS = 1
/** So many times as long as it took it is not done again. */
const REST = 20

export class Throttle {
  readonly #clock: Clock
  readonly #task: () => void
  /** In `clock.elapsed()` milliseconds. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  constructor(clock: Clock, task: () => void) {
    this.#clock = clock
    this.#task = task
  }

  /** Does it now, or when it has rested: once for all that asked for it meanwhile. */
  request(): void {
    const rest = this.#restsUntil - this.#clock.elapsed()
    if (rest <= 0) this.now()
    else this.#cancel ??= this.#clock.after(rest, () => this.now())
  }

  /** Does it at once, whatever it takes. */
  now(): void {
    this.stop()
    const began = this.#clock.elapsed()
    this.#task()
    const took = this.#clock.elapsed() - began
    this.#restsUntil = took <= CHEAP_MS ? Number.NEGATIVE_INFINITY : began + (1 + REST) * took
  }

  /** Forgets what was asked for and is not done yet. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
