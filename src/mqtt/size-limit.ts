/** How large a message the broker takes: as it says, as it is configured, and as its refusals show. */
import type { Clock } from '../base/clock.ts'

/** Fixed header, lengths and packet id. */
const PACKET_OVERHEAD_BYTES = 16
/**
 * The connection may have ended by chance, or the broker is configured anew. To find out may cost a connection: so the
 * time until then doubles with each that it has cost.
 */
const RELEARN_MS = 5 * 60_000
/**
 * Mosquitto 2.0.11 with `max_queued_messages 0` refuses what is over its `message_size_limit`, and ends the connection
 * right after that.
 */
const REFUSAL_MS = 50
/** The same for a refusal, as others are forgotten with the connection, and for a size that the broker took before. */
const RELEARN_SOON_MS = 5_000
/** No broker has a lower limit. */
const LEAST_LIMIT = 2048

export class SizeLimit {
  readonly #clock: Clock
  /** Of packets, in bytes: the least of what is known. */
  readonly #known: number
  #told = Number.POSITIVE_INFINITY
  /** Payloads of so many bytes or more were refused on this connection. */
  #refused = Number.POSITIVE_INFINITY
  #refusedAt = Number.NEGATIVE_INFINITY
  /** At payloads of so many bytes or more the broker is taken to end the connection. */
  #fatal = Number.POSITIVE_INFINITY
  #relearnAt = 0
  /** Connections that it has cost to find out anew. */
  #retries = 0
  /** The largest payload that was acknowledged since one of its size was refused. */
  #taken = LEAST_LIMIT
  /** The largest ever. */
  #everTaken = LEAST_LIMIT

  /** `known`: what the broker is known to take, whatever it says. */
  constructor(known: number, clock: Clock) {
    this.#known = known
    this.#clock = clock
  }

  /** `told`: the largest packet that the broker takes, as it says. */
  connected(told: number): void {
    this.#told = told
    this.#refused = Number.POSITIVE_INFINITY
    this.#refusedAt = Number.NEGATIVE_INFINITY
  }

  /** In how many milliseconds a size that ended connections may be tried again; undefined: there is none. */
  get relearnInMs(): number | undefined {
    return this.#fatal === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.#relearnAt - this.#clock.elapsed())
  }

  /** The time of `relearnInMs` is over. A timer may be early by a fraction of a millisecond, so it is not asked again. */
  relearn(): void {
    this.#relearnAt = 0
  }

  /** `besides`: the bytes of topic and properties. */
  allows(payload: number, besides: () => number): boolean {
    if (payload >= this.#refused || (payload >= this.#fatal && this.#clock.elapsed() < this.#relearnAt)) return false
    const most = Math.min(this.#known, this.#told)
    return most === Number.POSITIVE_INFINITY || payload + besides() + PACKET_OVERHEAD_BYTES <= most
  }

  /** Whether no payload of this size has been acknowledged so far. */
  isUntried(payload: number): boolean {
    return payload > this.#taken
  }

  /** A payload was acknowledged. */
  acknowledged(payload: number): void {
    this.#taken = Math.max(this.#taken, payload)
    this.#everTaken = Math.max(this.#everTaken, payload)
    if (payload < this.#fatal) return
    this.#fatal = Number.POSITIVE_INFINITY
    this.#retries = 0
  }

  /** The broker refused a payload as too large. */
  refused(payload: number): void {
    this.#refused = Math.min(this.#refused, payload)
    // It is another broker than the one that took more, or configured anew.
    if (payload <= this.#taken) this.#taken = LEAST_LIMIT
    this.#refusedAt = this.#clock.elapsed()
  }

  /** The connection is lost. Returns whether that is due to a refusal right before. */
  lost(): boolean {
    if (this.#clock.elapsed() - this.#refusedAt > REFUSAL_MS) return false
    this.#ended(this.#refused, RELEARN_SOON_MS)
    return true
  }

  /** A connection ended, most likely because of a payload of this size. */
  endedConnection(payload: number): void {
    this.#ended(payload, payload <= this.#everTaken ? RELEARN_SOON_MS : RELEARN_MS)
  }

  #ended(payload: number, relearnMs: number): void {
    if (payload >= this.#fatal) this.#retries += 1
    // Messages of a kind differ by a few bytes. It would cost connections to find out the limit exactly.
    const likely = Math.max(this.#taken + 1, Math.floor((payload * 7) / 8))
    this.#fatal = Math.min(this.#fatal, likely)
    this.#relearnAt = this.#clock.elapsed() + relearnMs * 2 ** this.#retries
  }
}
