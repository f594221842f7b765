/** Decides how long to wait before the next connection, from how the last one ended. */
import { Backoff } from '../base/backoff.ts'
import type { Failure } from './failure.ts'

/** Nobody corrects a password or a broker within seconds, and some ban clients that ask too often. */
const HOPELESS_WAIT_MS = 60_000
const TAKEOVER_WAIT_MS = { min: 5_000, max: 60_000 }
/**
 * A connection that ends sooner was unsteady. When another client takes over, Mosquitto closes the connection without a
 * reason: so the limit for an orderly end is longer than for a broken connection.
 */
const STEADY_MS = { closed: 60_000, otherwise: 5_000 }
/** So many unsteady connections in a row are no accident. */
const UNSTEADY_LIMIT = 5
/** After a connection of this length, waits for a takeover start small again. */
const TAKEOVERS_OVER_MS = 5 * 60_000

export class Pacing {
  readonly #backoff: Backoff
  readonly #random: () => number
  #unsteady = 0
  #takeovers = 0

  constructor(random: () => number) {
    this.#random = random
    this.#backoff = new Backoff({ min: 1_000, max: 30_000, random })
  }

  /** Whether the latest connection was the one that reached the limit of unsteady ones. */
  get suspicious(): boolean {
    return this.#unsteady === UNSTEADY_LIMIT
  }

  /**
   * Milliseconds to wait. `livedMs`: how long the connection was accepted; undefined: never. `explained`: it is known
   * what ended it, and that will not be sent again soon.
   */
  after(failure: Failure, livedMs: number | undefined, explained: boolean): number {
    if (livedMs !== undefined) {
      const steady = failure.code === 'closed' ? STEADY_MS.closed : STEADY_MS.otherwise
      this.#unsteady = livedMs < steady && !explained ? this.#unsteady + 1 : 0
      if (this.#unsteady < UNSTEADY_LIMIT) this.#backoff.reset()
      if (livedMs >= TAKEOVERS_OVER_MS) this.#takeovers = 0
    }
    if (failure.code === 'unauthorized' || failure.code === 'unsuitable') return HOPELESS_WAIT_MS
    if (failure.code === 'taken_over') {
      // Two clients use one id: each that reconnects at once makes the other do the same.
      const ceiling = Math.min(TAKEOVER_WAIT_MS.max, TAKEOVER_WAIT_MS.min * 2 ** this.#takeovers)
      this.#takeovers += 1
      return Math.round(ceiling * (0.5 + 0.5 * this.#random()))
    }
    return this.#backoff.next()
  }
}
