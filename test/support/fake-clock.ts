import type { Clock } from '../../src/base/clock.ts'

/** A clock that only the test advances; `waits` contains the delays of all timers that were started. */
export class FakeClock implements Clock {
  readonly waits: number[] = []
  #now: number
  readonly #start: number
  /** The sum of all steps of the wall clock, in milliseconds. */
  #set = 0
  #timers: { at: number; task: () => void }[] = []

  constructor(now = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = now
    this.#start = now
  }

  now = () => this.#now + this.#set
  elapsed = () => this.#now - this.#start

  after = (ms: number, task: () => void) => {
    const timer = { at: this.#now + ms, task }
    this.waits.push(ms)
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** Sets the wall clock forwards or backwards; no time passes. */
  step(ms: number): void {
    this.#set += ms
  }

  /** Fires the due timers in order, and lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#now = Math.max(this.#now, due.at)
      this.#timers = this.#timers.filter((other) => other !== due)
      due.task()
      await new Promise(setImmediate)
    }
    this.#now = end
    await new Promise(setImmediate)
  }

  get pending(): number {
    return this.#timers.length
  }
}
