/**
 * What a lost connection says about the items that were on their way, and what a refusal right before it says. Some brokers
 * end the connection at a publish that they do not accept. Sent again at each reconnect, it would end every connection. So
 * an item that may be such a one is a suspect: it is sent alone only, so that the next loss is due to it and nothing else.
 *
 * | Loss | Counts against |
 * | --- | --- |
 * | the broker stopped answering, or another client took over | nothing: the broker did not object to any item |
 * | right after a refusal as too large | that size and all larger ones, from now on |
 * | right after another refusal | the refused item: Mosquitto 2.0.11 with `max_queued_messages 0` refuses, and then ends the connection |
 * | with items on their way larger than any that was acknowledged | these, and all others of such sizes are suspects |
 * | any other | all that were on their way; a second one in a row makes them suspects |
 * | with one item alone on its way | that one; after three losses in a row it is given up |
 */
import type { Clock } from '../base/clock.ts'
import type { Failure } from './failure.ts'
import type { SizeLimit } from './size-limit.ts'

const SUSPECT_AFTER = 2
export const GIVE_UP_AFTER = 3
/** A loss so soon after a refusal is due to it. */
const REFUSAL_MS = 500

/** Whether no publish can have ended the connection. */
export const isBlameless = ({ code }: Failure) => code === 'timeout' || code === 'taken_over'

interface Sent {
  /** Connections lost in a row that count against it. */
  losses: number
  readonly sentBytes: number
}

export class PoisonMessages<T extends Sent> {
  readonly #clock: Clock
  readonly #sizes: SizeLimit
  /** The last item that the broker refused, and when. */
  #refused: { readonly item: T; readonly isTooLarge: boolean; readonly at: number } | undefined

  constructor(clock: Clock, sizes: SizeLimit) {
    this.#clock = clock
    this.#sizes = sizes
  }

  isSuspect({ losses, sentBytes }: T): boolean {
    return losses >= SUSPECT_AFTER || this.#sizes.isSuspect(sentBytes)
  }

  refused(item: T, isTooLarge: boolean): void {
    this.#refused = { item, isTooLarge, at: this.#clock.elapsed() }
    if (!isTooLarge) return
    if (this.isSuspect(item)) this.#sizes.endedConnection(item.sentBytes)
    this.#sizes.refused(item.sentBytes)
  }

  /** Counts a loss. Returns whether it is explained by a size that will not be sent again soon. */
  connectionLost(failure: Failure, unacknowledged: Iterable<T>): boolean {
    const refused = this.#justRefused()
    this.#refused = undefined
    if (isBlameless(failure)) return false
    if (refused?.isTooLarge) {
      this.#sizes.endedConnection(refused.item.sentBytes)
      return true
    }
    const items = refused === undefined ? [...unacknowledged] : [refused.item]
    const untried = items.filter(({ sentBytes }) => this.#sizes.isUntried(sentBytes))
    for (const item of untried.length > 0 ? untried : items) item.losses += 1
    if (untried.length > 0) this.#sizes.doubt()
    else this.#sizes.doubtAgain(items.filter(({ losses }) => losses >= SUSPECT_AFTER))
    return untried.length > 0
  }

  /** Counts a loss with `item` alone on its way. Returns why to give it up, if it is to be. */
  aloneLost(failure: Failure, item: T): 'too_large' | 'quarantined' | undefined {
    if (isBlameless(failure)) return undefined
    item.losses += 1
    if (item.losses < GIVE_UP_AFTER) return undefined
    if (!this.#sizes.isUntried(item.sentBytes)) return 'quarantined'
    this.#sizes.refused(item.sentBytes)
    this.#sizes.endedConnection(item.sentBytes)
    return 'too_large'
  }

  #justRefused() {
    if (this.#refused === undefined) return undefined
    return this.#clock.elapsed() - this.#refused.at <= REFUSAL_MS ? this.#refused : undefined
  }
}
