/**
 * Through which hubs pass when they connect, few at a time. A thousand that all log in at once keep each other waiting
 * until their time limits have passed.
 */
import type { Clock } from '../base/clock.ts'

export interface SemaphoreOptions {
  readonly clock: Clock
  /** How many may connect at a time; default 48. */
  readonly places?: number
  /** How long one that does not answer keeps its place, in milliseconds; default a second. */
  readonly patienceMs?: number
}

/** A place that somebody has. */
export interface Slot {
  /** The hub has answered: the place is kept until the work ends. */
  answered(): void
  /** What costs much is done: somebody else may begin. */
  leave(): void
}

export class Semaphore {
  readonly #clock: Clock
  readonly #patienceMs: number
  #free: number
  /** Those who wait, the first one first. */
  readonly #waiting = new Set<() => void>()

  constructor({ clock, places = 48, patienceMs = 1000 }: SemaphoreOptions) {
    this.#clock = clock
    this.#patienceMs = patienceMs
    this.#free = places
  }

  /**
   * Does the work when there is a place: at once where few connect. A hub that does not answer loses its place and goes
   * on without: hundreds that are dead do not keep the others from being read.
   * @param signal ends the wait; the work is begun all the same, and fails by itself
   */
  async pass<T>(signal: AbortSignal, work: (place: Slot) => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else if (!(await this.#turn(signal))) return work({ answered: () => {}, leave: () => {} })
    let isTaken = true
    const leave = () => {
      if (isTaken) this.#leave()
      isTaken = false
    }
    const answered = this.#clock.after(this.#patienceMs, leave)
    try {
      return await work({ answered, leave })
    } finally {
      answered()
      leave()
    }
  }

  /** Resolves with `true` when somebody has given up a place for this one. */
  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      const giveUp = () => {
        this.#waiting.delete(go)
        resolve(false)
      }
      if (signal.aborted) return resolve(false)
      this.#waiting.add(go)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free += 1
    else {
      this.#waiting.delete(next)
      next()
    }
  }
}
