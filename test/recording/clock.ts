/** A clock that only the scenario advances. Very short timers run in real time, because they wait for messages. */

interface Timer {
  readonly at: number
  readonly run: () => void
  handle: NodeJS.Timeout | undefined
}

/** Timers up to this length run in real time. Longer timers run only when the clock jumps. */
const SHORT_MS = 40

export class SteppedClock {
  readonly #timers = new Set<Timer>()
  #elapsed = 0
  #now = Date.parse('2026-01-01T00:00:00Z')

  /** Returns the time of the wall clock, which stands still until it is set. */
  now = () => this.#now
  elapsed = () => this.#elapsed

  after = (ms: number, task: () => void) => {
    const run = () => {
      cancel()
      this.#elapsed = Math.max(this.#elapsed, timer.at)
      task()
    }
    const timer: Timer = {
      at: this.#elapsed + ms,
      run,
      handle: ms > SHORT_MS ? undefined : setTimeout(() => run(), ms),
    }
    const cancel = () => {
      clearTimeout(timer.handle)
      this.#timers.delete(timer)
    }
    this.#timers.add(timer)
    return cancel
  }

  /** Sets the wall clock forward, without making timers due. */
  setForward(ms: number): void {
    this.#now += ms
  }

  /** Runs the timers that become due, in order. The wall clock does not change. */
  jump(ms: number): void {
    this.#elapsed += ms
    const due = [...this.#timers].filter(({ at }) => at <= this.#elapsed).sort((one, other) => one.at - other.at)
    // Check each timer again, because a task may cancel another timer.
    for (const timer of due) if (this.#timers.has(timer)) timer.run()
  }

  /** Returns whether a short timer is running. */
  get busy(): boolean {
    return this.#timers.values().some(({ handle }) => handle !== undefined)
  }

  /** Returns the milliseconds until the next timer is due; `Infinity` if there is none. */
  get next(): number {
    return Math.min(...[...this.#timers].map(({ at }) => at)) - this.#elapsed
  }
}
