/** Spreads work over time: a first few tasks at once, the others at a rate, and none again before a rest. */
import type { Clock } from '../base/clock.ts'

interface PacerOptions {
  readonly clock: Clock
  /** How many may be done without delay, once. */
  readonly atOnce: number
  /** How many of the later ones are done in one go, so that others get their turn. */
  readonly perTurn: number
  /** Time between two goes, in milliseconds. */
  readonly intervalMs: number
  /** How long to put off the next go, in milliseconds; default: not at all. */
  readonly busyMs?: () => number
  /** Least time until the same is done again. */
  readonly restMs: number
  readonly task: (key: string) => void
}

export class Pacer {
  readonly #options: PacerOptions
  /** Key → when it may be done, in the order of the requests. */
  readonly #due = new Map<string, number>()
  /** When each was last done, oldest first; forgotten when it has rested. */
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

  /** Does `key` when its turn comes, at the earliest in `delayMs`; the sooner of two requests counts. */
  request(key: string, delayMs = 0): void {
    const { clock, restMs } = this.#options
    const rested = (this.#done.get(key) ?? Number.NEGATIVE_INFINITY) + restMs
    const due = Math.max(clock.elapsed() + delayMs, rested)
    this.#due.set(key, Math.min(due, this.#due.get(key) ?? Number.POSITIVE_INFINITY))
    this.#wake(due)
  }

  /** Takes a request back. */
  cancel(key: string): void {
    this.#due.delete(key)
  }

  /** From now on nothing is done at once. */
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
      this.#rest(key, now)
      task(key)
    }
    if (this.#due.size > 0) this.#wake(next)
  }

  #rest(key: string, now: number): void {
    this.#last = now
    this.#done.delete(key)
    this.#done.set(key, now)
  }

  #forgetRested(now: number): void {
    for (const [key, at] of this.#done) {
      if (at + this.#options.restMs > now) return
      this.#done.delete(key)
    }
  }
}
