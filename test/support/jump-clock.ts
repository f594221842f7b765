import type { Clock } from '../../src/base/clock.ts'

interface Timer {
  readonly at: number
  readonly run: () => void
  handle: NodeJS.Timeout
}

/** The system's clock, which a test can also move forward. A whole daemon cannot start with a stopped clock. */
export class JumpClock implements Clock {
  readonly #timers = new Set<Timer>()
  #ahead = 0

  now = () => Date.now() + this.#ahead
  elapsed = () => performance.now() + this.#ahead

  after = (ms: number, task: () => void) => {
    const run = () => {
      cancel()
      task()
    }
    // An overdue timer fires immediately, as with the system's clock.
    const timer: Timer = { at: this.elapsed() + ms, run, handle: setTimeout(run, Math.max(0, ms)) }
    const cancel = () => {
      clearTimeout(timer.handle)
      this.#timers.delete(timer)
    }
    this.#timers.add(timer)
    return cancel
  }

  /** Fires the due timers in order, each at its due time. */
  jump(ms: number): void {
    const ahead = this.#ahead + ms
    for (;;) {
      const [next] = [...this.#timers].sort((one, other) => one.at - other.at)
      if (next === undefined || next.at > performance.now() + ahead) break
      this.#ahead = Math.max(this.#ahead, Math.min(ahead, next.at - performance.now()))
      next.run()
    }
    this.#ahead = ahead
    for (const timer of this.#timers) {
      clearTimeout(timer.handle)
      timer.handle = setTimeout(timer.run, Math.max(0, timer.at - this.elapsed()))
    }
  }
}
