/** How long to wait before the next connection, from how the last one ended. */
import { Backoff } from '../base/backoff.ts'
import type { Failure } from './failure.ts'

/** Nobody mends a password within seconds, and some brokers ban who asks too often. */
const unauthorizedWait = 60_000
const takeoverWait = { min: 5_000, max: 60_000 }
/**
 * A connection that ends sooner does not count as a success. Mosquitto closes one that another client took over without
 * a word, so an orderly end counts longer against it than a broken line does.
 */
const steadyMs = { closed: 60_000, otherwise: 5_000 }
/** After so many unsteady connections in a row, something ends them on purpose. */
const unsteadyLimit = 5
const peaceMs = 5 * 60_000

export class Pacing {
  readonly #backoff: Backoff
  readonly #random: () => number
  #unsteady = 0
  #takeovers = 0

  constructor(random: () => number) {
    this.#random = random
    this.#backoff = new Backoff({ min: 1_000, max: 30_000, random })
  }

  /** Connections in a row that ended as soon as they were made. */
  get suspicious(): boolean {
    return this.#unsteady === unsteadyLimit
  }

  /** Milliseconds to wait. `livedMs`: how long the broker had accepted the connection; undefined if it never did. */
  after(failure: Failure, livedMs: number | undefined): number {
    if (livedMs !== undefined) {
      const steady = failure.code === 'closed' ? steadyMs.closed : steadyMs.otherwise
      this.#unsteady = livedMs < steady ? this.#unsteady + 1 : 0
      if (this.#unsteady < unsteadyLimit) this.#backoff.reset()
      if (livedMs >= peaceMs) this.#takeovers = 0
    }
    if (failure.code === 'unauthorized') return unauthorizedWait
    if (failure.code === 'taken_over') {
      // Two clients with one id: whoever comes back at once only makes the other do the same.
      const ceiling = Math.min(takeoverWait.max, takeoverWait.min * 2 ** this.#takeovers)
      this.#takeovers += 1
      return Math.round(ceiling * (0.5 + 0.5 * this.#random()))
    }
    return this.#backoff.next()
  }
}
