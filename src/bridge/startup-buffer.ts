/** Commands and events that wait until it is known whether another bridge is active: not for ever, and not without bound. */
import type { Clock } from '../base/clock.ts'

const MAX_TASKS = 1_000
/** The same as of events and answers that wait for the broker. */
const MAX_MS = 60_000

export class StartupBuffer {
  readonly #clock: Clock
  #tasks: { readonly at: number; readonly run: () => void }[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(run: () => void): void {
    this.#tasks.push({ at: this.#clock.elapsed(), run })
    if (this.#tasks.length > MAX_TASKS) this.#tasks.shift()
  }

  /** Runs what has not waited for too long. */
  run(): void {
    const oldest = this.#clock.elapsed() - MAX_MS
    for (const { at, run } of this.#tasks.splice(0)) if (at >= oldest) run()
  }

  drop(): void {
    this.#tasks = []
  }
}
