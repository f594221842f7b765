/** Runs a task again and again without using up the event loop: at once if it is cheap, rarely if it is not. */
import type { Clock } from './clock.ts'

/** A faster task runs at each request. */
const CHEAP_MS = 1
/** How many times as long as it took the task then rests. */
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
