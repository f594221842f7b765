/** Runs a cheap task at each request, an expensive one rarely, so that the task does not block the event loop. */
import type { Clock } from './clock.ts'

/** A task that takes at most this long runs at each request. */
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

  /** Runs the task now or, during a pause, once at its end, for all requests in the pause. */
  request(): void {
    const rest = this.#restsUntil - this.#clock.elapsed()
    if (rest <= 0) this.now()
    else this.#cancel ??= this.#clock.after(rest, () => this.now())
  }

  now(): void {
    this.stop()
    const began = this.#clock.elapsed()
    this.#task()
    const took = this.#clock.elapsed() - began
    this.#restsUntil = took <= CHEAP_MS ? Number.NEGATIVE_INFINITY : began + (1 + REST) * took
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
