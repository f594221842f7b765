/** Runs a task at once if it is cheap. After an expensive run, pauses before the next one, to free the event loop. */
import type { Clock } from './clock.ts'

/** A task that takes at most this long runs on each request. */
const CHEAP_MS = 0.2
/** The pause after a run, as a multiple of the run's duration. */
const REST = 50

export class Throttle {
  readonly #clock: Clock
  readonly #task: () => void
  /** When the pause after the last run ends, in `clock.elapsed()` milliseconds. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  constructor(clock: Clock, task: () => void) {
    this.#clock = clock
    this.#task = task
  }

  /** Runs the task now. During a pause, the task runs once, at the end of the pause. */
  request(): void {
    const rest = this.#restsUntil - this.#clock.elapsed()
    if (rest <= 0) this.now()
    else this.#cancel ??= this.#clock.after(rest, () => this.now())
  }

  now(): void {
    this.stop()
    const startedAt = this.#clock.elapsed()
    this.#task()
    const took = this.#clock.elapsed() - startedAt
    this.#restsUntil = took <= CHEAP_MS ? Number.NEGATIVE_INFINITY : startedAt + (1 + REST) * took
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
