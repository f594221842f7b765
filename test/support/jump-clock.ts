import type { Clock } from '../../src/base/clock.ts'

interface Timer {
  readonly at: number
  readonly run: () => void
  handle: NodeJS.Timeout
}

/** The system's clock, until a test moves its hands forward: for a whole daemon, which does not start on a still one. */
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
    // What is overdue runs at once, as by the system's clock.
    const timer: Timer = { at: this.elapsed() + ms, run, handle: setTimeout(run, Math.max(0, ms)) }
    const cancel = () => {
      clearTimeout(timer.handle)
      this.#timers.delete(timer)
    }
    this.#timers.add(timer)
    return cancel
  }

  /** What falls due by that runs at once, each at its time: as in a process that was awake. */
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
