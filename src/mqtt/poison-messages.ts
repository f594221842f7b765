/**
 * Finds items whose publishing makes the broker end the connection. Some brokers do this instead of refusing a publish,
 * and resending the item would end every connection. Therefore, an item that may have caused a loss becomes a suspect,
 * which is only sent alone: if the connection is lost again, the suspect is the cause.
 *
 * | Event | Counts against |
 * | --- | --- |
 * | a refusal as too large | that size and all larger ones, until the connection ends |
 * | any other refusal | the refused item, until the connection ends |
 * | a loss because the broker stopped answering, or another client took over | nothing: the broker rejected no item |
 * | a loss right after a refusal as too large | that size and all larger ones, even on later connections |
 * | a loss right after another refusal | the refused item: Mosquitto 2.0.11 does both with `max_queued_messages 0` |
 * | a loss with items in flight larger than any acknowledged one | those items; all items of such sizes are suspects |
 * | any other loss | all items in flight; a second consecutive loss makes them suspects |
 * | a loss while a suspect is sent alone | that suspect; it is given up after three consecutive losses |
 */
import type { Clock } from '../base/clock.ts'
import type { Failure } from './failure.ts'
import { PACKET_TOO_LARGE } from './packet-filter.ts'
import type { Block } from './retained.ts'
import type { Item } from './sequence.ts'

const SUSPECT_AFTER = 2
export const GIVE_UP_AFTER = 3
/** A loss this soon after a refusal is attributed to the refusal. */
const REFUSAL_MS = 500
/** An upper bound for the size of a packet's fixed header, length fields and packet id. */
const PACKET_OVERHEAD_BYTES = 16
/** How long to wait before a size is retried, in case the broker's limit has changed; doubles with each failure. */
const RELEARN_MS = 5 * 60_000
const MAX_DOUBLINGS = 8
/** Few brokers have a lower limit, so smaller payloads become suspects only with evidence. */
const LEAST_LIMIT = 2048

/** Returns whether a publish cannot have caused a failure. */
export const isBlameless = ({ code }: Failure) => code === 'timeout' || code === 'taken_over'

/** `detail` is for the log. */
export interface Refusal {
  readonly block: Block
  readonly detail: string
}

export const TOO_LARGE: Refusal = { block: 'too_large', detail: 'it is larger than the broker accepts' }

export class PoisonMessages {
  readonly #clock: Clock
  /** The configured maximum packet size, in bytes, regardless of the size that the broker announces. */
  readonly #configured: number
  #limit: number
  /** Payloads of this size or larger were found too large on this connection. */
  #tooLargeFrom = Number.POSITIVE_INFINITY
  /** Payloads of this size or larger ended a connection. */
  #fatalFrom = Number.POSITIVE_INFINITY
  /** The size of the largest acknowledged payload; reset when a later loss or refusal contradicts it. */
  #largestAccepted = LEAST_LIMIT
  #relearnAt = 0
  #failedTries = 0
  #refused: { readonly item: Item; readonly isTooLarge: boolean; readonly at: number } | undefined
  /** Whether payloads larger than `#largestAccepted` are suspects, because such a payload may have caused a loss. */
  doubted = false

  constructor(clock: Clock, configured = Number.POSITIVE_INFINITY) {
    this.#clock = clock
    this.#configured = configured
    this.#limit = configured
  }

  /** @param announced the broker's maximum packet size, in bytes */
  connected(announced: number): void {
    this.#limit = Math.min(this.#configured, announced)
    this.#tooLargeFrom = Number.POSITIVE_INFINITY
  }

  /** Determines whether an item may be sent. A suspect may only be sent alone. */
  judge(item: Item): 'fine' | 'too_large' | 'suspect' {
    const { sentBytes, losses } = item
    if (sentBytes >= this.#tooLargeFrom) return 'too_large'
    const overhead = item.kind === 'message' ? item.overheadBytes : Buffer.byteLength(item.topic)
    if (sentBytes + overhead + PACKET_OVERHEAD_BYTES > this.#limit) return 'too_large'
    const isSuspect = sentBytes >= this.#fatalFrom || (this.doubted && sentBytes > this.#largestAccepted)
    return isSuspect || losses >= SUSPECT_AFTER ? 'suspect' : 'fine'
  }

  isWorthALoss({ sentBytes }: Item): boolean {
    return sentBytes < this.#fatalFrom || this.#clock.elapsed() >= this.#relearnAt
  }

  accepted(item: Item): void {
    item.losses = 0
    this.#largestAccepted = Math.max(this.#largestAccepted, item.sentBytes)
    if (item.sentBytes < this.#fatalFrom) return
    this.#fatalFrom = Number.POSITIVE_INFINITY
    this.#failedTries = 0
  }

  /** @param reason the PUBACK's reason code */
  refused(item: Item, reason: number): Refusal {
    const isTooLarge = reason === PACKET_TOO_LARGE
    this.#refused = { item, isTooLarge, at: this.#clock.elapsed() }
    if (isTooLarge) {
      if (this.judge(item) === 'suspect') this.#endedConnection(item)
      this.#isTooLarge(item)
    }
    return { block: isTooLarge ? 'too_large' : 'denied', detail: `the broker refuses it with reason ${reason}` }
  }

  /** Counts a loss. Returns whether the cause is a payload size that will not be sent again soon. */
  connectionLost(failure: Failure, unacknowledged: Iterable<Item>): boolean {
    const last = this.#refused
    this.#refused = undefined
    if (isBlameless(failure)) return false
    const refused = last !== undefined && this.#clock.elapsed() - last.at <= REFUSAL_MS ? last : undefined
    if (refused?.isTooLarge) {
      this.#endedConnection(refused.item)
      return true
    }
    const items = refused === undefined ? [...unacknowledged] : [refused.item]
    const untried = items.filter(({ sentBytes }) => sentBytes > this.#largestAccepted)
    for (const item of untried.length > 0 ? untried : items) item.losses += 1
    if (untried.length > 0) this.doubted = true
    else if (items.some(({ losses, sentBytes }) => losses >= SUSPECT_AFTER && sentBytes > LEAST_LIMIT)) {
      // The second consecutive loss with these items in flight: earlier acknowledgements, perhaps by a different
      // broker, no longer prove anything.
      this.#largestAccepted = LEAST_LIMIT
      this.doubted = true
    }
    return untried.length > 0
  }

  /** Counts a loss with only `item` in flight. Returns the reason if the item must be given up. */
  aloneLost(failure: Failure, item: Item): Refusal | undefined {
    if (isBlameless(failure)) return undefined
    item.losses += 1
    const { losses, sentBytes } = item
    if (losses < GIVE_UP_AFTER) return undefined
    if (sentBytes <= this.#largestAccepted) {
      const detail = `${losses} consecutive connections were lost while it was being published`
      return { block: 'quarantined', detail }
    }
    this.#isTooLarge(item)
    this.#endedConnection(item)
    return { block: 'too_large', detail: `the broker ends the connection when it receives it (${sentBytes} bytes)` }
  }

  /** Call this when no suspects are left. */
  allTried(): void {
    this.doubted = this.#fatalFrom !== Number.POSITIVE_INFINITY
  }

  /** Milliseconds until large payloads may be retried; `undefined` if no payload size has ended a connection. */
  get relearnInMs(): number | undefined {
    if (this.#fatalFrom === Number.POSITIVE_INFINITY) return undefined
    return Math.max(0, this.#relearnAt - this.#clock.elapsed())
  }

  /** Permits large payloads again. Does not compare the time, because the caller's timer may fire slightly early. */
  relearn(): void {
    this.#relearnAt = 0
    this.#tooLargeFrom = Number.POSITIVE_INFINITY
  }

  #isTooLarge({ sentBytes }: Item): void {
    this.#tooLargeFrom = Math.min(this.#tooLargeFrom, sentBytes)
    // Such a payload was accepted before, by a different broker or with a different configuration of this broker.
    if (sentBytes <= this.#largestAccepted) this.#largestAccepted = 0
  }

  #endedConnection({ sentBytes }: Item): void {
    this.doubted = true
    if (sentBytes >= this.#fatalFrom) this.#failedTries = Math.min(MAX_DOUBLINGS, this.#failedTries + 1)
    this.#fatalFrom = Math.min(this.#fatalFrom, sentBytes)
    this.#relearnAt = this.#clock.elapsed() + RELEARN_MS * 2 ** this.#failedTries
  }
}
