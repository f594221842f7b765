/** Runs a repeated task without using up the event loop: a cheap task at once, an expensive one rarely. */
import type { Clock } from './clock.ts'

/** A task that is faster than this runs at each request. */
const CHEAP_MS = 1
/** The pause after a run, as a multiple of its duration. */
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

  /** Runs the task now, or once after the pause for all requests until then. */
  request(): void {
    const rest = this.#restsUntil - this.#clock.elapsed()
    if (rest <= 0) this.now()
    else this.#cancel ??= this.#clock.after(rest, () => this.now())
  }

  /** Runs the task at once. */
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
