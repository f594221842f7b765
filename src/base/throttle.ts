/** Runs a repeated task without blocking the event loop: a cheap task at each request, an expensive one rarely. */
import type { Clock } from './clock.ts'

/** A task that is not slower than this runs at each request. */
const CHEAP_MS = 1
/** The pause after a run, as a multiple of its duration. */
const REST = 20

export class Throttle {
  readonly #clock: Clock
  readonly #task: () => void
  /** End of the pause, in `clock.elapsed()` milliseconds. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  constructor(clock: Clock, task: () => void) {
    this.#clock = clock
    this.#task = task
  }

  /** Runs the task now or, during a pause, once at its end, for all requests in the pause. */
  request(): void {
    const rest = this.#restsUntil - this.#clock.elapsed()
    if (rest <= 0) this.now()
    else this.#cancel ??= this.#clock.after(rest, () => this.now())
  }

  /** Runs the task immediately. */
  now(): void {
    this.stop()
    const began = this.#clock.elapsed()
    this.#task()
    const took = this.#clock.elapsed() - began
    this.#restsUntil = took <= CHEAP_MS ? Number.NEGATIVE_INFINITY : began + (1 + REST) * took
  }

  /** Drops a pending request. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
