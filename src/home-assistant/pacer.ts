/** Spreads work over time: runs the first tasks at once, the others at a limited rate, and repeats none too soon. */
import type { Clock } from '../base/clock.ts'

interface PacerOptions {
  readonly clock: Clock
  /** How many tasks run without delay, once. */
  readonly atOnce: number
  /** How many later tasks run in one turn, so that other work gets its turn. */
  readonly perTurn: number
  /** Time between two turns, in milliseconds. */
  readonly intervalMs: number
  /** How long to postpone the next turn, in milliseconds; default: not at all. */
  readonly busyMs?: () => number
  /** Minimum time before a task is repeated. */
  readonly restMs: number
  readonly task: (key: string) => void
}

export class Pacer {
  readonly #options: PacerOptions
  /** Key → earliest time of its task, in the order of the requests. */
  readonly #due = new Map<string, number>()
  /** Key → when its task last ran, oldest first; removed after the rest. */
  readonly #done = new Map<string, number>()
  #atOnce: number
  #last = Number.NEGATIVE_INFINITY
  #wakeAt = Number.POSITIVE_INFINITY
  #cancel: (() => void) | undefined
  #stopped = false

  constructor(options: PacerOptions) {
    this.#options = options
    this.#atOnce = options.atOnce
  }

  /** Runs the task of `key` in its turn, after `delayMs` at the earliest; of two requests, the earlier time counts. */
  request(key: string, delayMs = 0): void {
    const { clock, restMs } = this.#options
    const rested = (this.#done.get(key) ?? Number.NEGATIVE_INFINITY) + restMs
    const due = Math.max(clock.elapsed() + delayMs, rested)
    this.#due.set(key, Math.min(due, this.#due.get(key) ?? Number.POSITIVE_INFINITY))
    this.#wake(due)
  }

  /** Withdraws a request. */
  cancel(key: string): void {
    this.#due.delete(key)
  }

  /** From now on, no task runs at once. */
  slowDown(): void {
    this.#atOnce = 0
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
    this.#due.clear()
  }

  #wake(due: number): void {
    const { clock, intervalMs } = this.#options
    const at = this.#atOnce > 0 ? due : Math.max(due, this.#last + intervalMs)
    if (this.#stopped || at >= this.#wakeAt) return
    this.#cancel?.()
    this.#wakeAt = at
    this.#cancel = clock.after(Math.max(0, at - clock.elapsed()), () => this.#tick())
  }

  #tick(): void {
    const { clock, perTurn, task } = this.#options
    this.#wakeAt = Number.POSITIVE_INFINITY
    const now = clock.elapsed()
    this.#forgetRested(now)
    const busyMs = this.#options.busyMs?.() ?? 0
    if (busyMs > 0) {
      this.#wake(now + busyMs)
      return
    }
    let next = Number.POSITIVE_INFINITY
    let turns = Math.max(perTurn, this.#atOnce)
    for (const [key, due] of this.#due) {
      if (due > now) {
        next = Math.min(next, due)
        continue
      }
      if (turns === 0) {
        next = now
        break
      }
      turns -= 1
      this.#atOnce = Math.max(0, this.#atOnce - 1)
      this.#due.delete(key)
      this.#last = now
      // At the end, because the oldest come first.
      this.#done.delete(key)
      this.#done.set(key, now)
      task(key)
    }
    if (this.#due.size > 0) this.#wake(next)
  }

  #forgetRested(now: number): void {
    for (const [key, at] of this.#done) {
      if (at + this.#options.restMs > now) return
      this.#done.delete(key)
    }
  }
}
