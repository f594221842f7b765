/** Decides how long to wait before the next connection, depending on how the last connection ended. */
import { Backoff } from '../base/backoff.ts'
import type { Failure } from './failure.ts'
import type { Protocol } from './types.ts'

/** A wrong password is not corrected within seconds, and some brokers ban clients that retry often. */
const HOPELESS_WAIT_MS = 60_000
/** While no broker accepts a connection. */
const ABSENT_WAIT_MS = { min: 1_000, max: 30_000 }
/** The broker accepts connections but ends them soon: it is running, so waits stay short. */
const UNSTEADY_WAIT_MS = { min: 2_000, max: 10_000 }
const TAKEOVER_WAIT_MS = { min: 5_000, max: 60_000 }
/**
 * A connection that ends sooner was unsteady. The limit is longer for an end without a reason: an MQTT 3.1.1 broker
 * ends a connection this way when another client takes over. An MQTT 5 broker sends the reason.
 */
const STEADY_MS = { wordless: 60_000, otherwise: 5_000 }
/** How many consecutive unsteady connections are suspicious. */
const UNSTEADY_LIMIT = 5
/** After a connection of this length, waits after a takeover start over. */
const TAKEOVERS_OVER_MS = 5 * 60_000

/** A connection that was accepted and has ended. */
export interface Ended {
  readonly livedMs: number
  readonly protocol: Protocol
  /** Whether the cause of the end is known and will not recur soon. */
  readonly explained: boolean
}

export class Pacing {
  readonly #absent: Backoff
  readonly #flapping: Backoff
  readonly #random: () => number
  #unsteady = 0
  #takeovers = 0

  constructor(random: () => number) {
    this.#random = random
    this.#absent = new Backoff({ ...ABSENT_WAIT_MS, random })
    this.#flapping = new Backoff({ ...UNSTEADY_WAIT_MS, random })
  }

  /** Whether the latest connection reached the limit of unsteady connections. */
  get suspicious(): boolean {
    return this.#unsteady === UNSTEADY_LIMIT
  }

  /** Milliseconds to wait. `ended` is undefined if no connection was accepted. */
  after(failure: Failure, ended: Ended | undefined): number {
    if (ended !== undefined) {
      const { livedMs, protocol, explained } = ended
      const isWordless = failure.code === 'closed' && protocol !== '5'
      const isSteady = explained || livedMs >= (isWordless ? STEADY_MS.wordless : STEADY_MS.otherwise)
      this.#unsteady = isSteady ? 0 : this.#unsteady + 1
      this.#absent.reset()
      if (this.#unsteady < UNSTEADY_LIMIT) this.#flapping.reset()
      if (livedMs >= TAKEOVERS_OVER_MS) this.#takeovers = 0
    }
    if (failure.code === 'unauthorized' || failure.code === 'unsuitable') return HOPELESS_WAIT_MS
    if (failure.code === 'taken_over') {
      // Two clients use one id: if both reconnect at once, they keep disconnecting each other.
      const ceiling = Math.min(TAKEOVER_WAIT_MS.max, TAKEOVER_WAIT_MS.min * 2 ** this.#takeovers)
      this.#takeovers += 1
      return Math.round(ceiling * (0.5 + 0.5 * this.#random()))
    }
    return (ended !== undefined && this.#unsteady >= UNSTEADY_LIMIT ? this.#flapping : this.#absent).next()
  }
}
