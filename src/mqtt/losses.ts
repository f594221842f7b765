/**
 * Finds the item at which a broker ends the connection: some do so at a publish that they do not accept. Sent again at
 * each reconnect, it would end every connection. So each item counts the connections lost in a row while it was
 * unacknowledged; with a few losses it is sent alone, so that the next loss is due to it and to nothing else.
 */
import type { Clock } from '../base/clock.ts'
import type { Failure } from './failure.ts'

const ALONE_AFTER = 2
export const GIVE_UP_AFTER = 3
/**
 * Mosquitto 2.0.11 with `max_queued_messages 0` refuses a publish and then ends the connection. A loss so soon after a
 * refusal counts against the refused item only.
 */
const REFUSAL_MS = 500

export class Losses<T extends { losses: number }> {
  readonly #clock: Clock
  readonly #isSuspect: (item: T) => boolean
  /** The item that is unacknowledged and sent alone. */
  #alone: T | undefined
  /** The last item that the broker refused, and when. */
  #refused: { readonly item: T; readonly at: number } | undefined

  /** `isSuspect`: whether an item is more likely than others to end a connection. It is sent alone after one loss. */
  constructor(clock: Clock, isSuspect: (item: T) => boolean = () => false) {
    this.#clock = clock
    this.#isSuspect = isSuspect
  }

  /** Whether an item is unacknowledged beside which no other may be sent. */
  get sendingAlone(): boolean {
    return this.#alone !== undefined
  }

  /** Whether `item` may be sent beside so many unacknowledged ones. If it must be alone, it is so from now on. */
  maySend(item: T, unacknowledged: number): boolean {
    if (item.losses < ALONE_AFTER) return true
    if (unacknowledged > 0) return false
    this.#alone = item
    return true
  }

  /** An item is acknowledged, refused, or was not sent after all. */
  done(item: T): void {
    if (this.#alone === item) this.#alone = undefined
  }

  refused(item: T): void {
    this.#refused = { item, at: this.#clock.elapsed() }
  }

  /** Counts a lost connection. Returns the item to give up, if there is one. */
  connectionLost(failure: Failure, unacknowledged: Iterable<T>): T | undefined {
    const alone = this.#alone
    const refused = this.#justRefused()
    this.#alone = undefined
    this.#refused = undefined
    // A broker that stopped answering did not object to any item.
    if (failure.code === 'timeout') return undefined
    const items = refused === undefined ? [...unacknowledged] : [refused]
    const suspects = items.filter(this.#isSuspect)
    for (const item of suspects) item.losses = Math.max(ALONE_AFTER, item.losses + 1)
    if (suspects.length === 0) for (const item of items) item.losses += 1
    const cause = refused ?? alone
    return cause !== undefined && cause.losses >= GIVE_UP_AFTER ? cause : undefined
  }

  #justRefused(): T | undefined {
    if (this.#refused === undefined) return undefined
    return this.#clock.elapsed() - this.#refused.at <= REFUSAL_MS ? this.#refused.item : undefined
  }
}
