/**
 * Time for a recording: it passes only when the scenario lets it. Only the shortest waits end by themselves, as they are
 * for what a broker may still have under way, and that takes as long as it takes.
 */

interface Timer {
  readonly at: number
  readonly run: () => void
  handle: NodeJS.Timeout | undefined
}

/** Longer waits than this are for a jump to end. */
const SHORT_MS = 40

export class SteppedClock {
  readonly #timers = new Set<Timer>()
  #elapsed = 0
  #now = Date.parse('2026-01-01T00:00:00Z')

  /** The hour stands still until it is set. */
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

  /** Sets the hour forward; nothing falls due by that. */
  setForward(ms: number): void {
    this.#now += ms
  }

  /** What falls due by that runs at once, in order; the hour stays. */
  jump(ms: number): void {
    this.#elapsed += ms
    const due = [...this.#timers].filter(({ at }) => at <= this.#elapsed).sort((one, other) => one.at - other.at)
    // One that runs may cancel another.
    for (const timer of due) if (this.#timers.has(timer)) timer.run()
  }

  /** Whether a wait is under way that ends by itself. */
  get busy(): boolean {
    return this.#timers.values().some(({ handle }) => handle !== undefined)
  }

  /** Milliseconds until the next timer falls due; `Infinity` without one. */
  get next(): number {
    return Math.min(...[...this.#timers].map(({ at }) => at)) - this.#elapsed
  }
}
