import type { Clock } from '../base/clock.ts'

/** The timers of a hub, all of which are cancelled when the hub stops. */
export class Timers {
  readonly #clock: Clock
  readonly #cancels = new Set<() => void>()
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs a task after a delay. Returns a function that cancels the timer. */
  after(ms: number, task: () => void): () => void {
    if (this.#stopped) return () => {}
    const cancelTimer = this.#clock.after(ms, () => {
      this.#cancels.delete(cancel)
      task()
    })
    const cancel = () => {
      this.#cancels.delete(cancel)
      cancelTimer()
    }
    this.#cancels.add(cancel)
    return cancel
  }

  /** Runs a task at an interval; 0 means never. */
  every(ms: number, task: () => void): void {
    if (ms <= 0) return
    this.after(ms, () => {
      this.every(ms, task)
      task()
    })
  }

  stop(): void {
    this.#stopped = true
    for (const cancel of [...this.#cancels]) cancel()
  }
}
