/** How large a message the broker takes: as it says, as it is configured, and as its refusals show. */
import type { Clock } from '../base/clock.ts'

/** Fixed header, lengths and packet id. */
const PACKET_OVERHEAD_BYTES = 16
/**
 * The connection may have ended by chance, or the broker is configured anew. To find out may cost a connection: so the
 * time until then doubles with each that it has cost.
 */
const RELEARN_MS = 5 * 60_000
/** No broker has a lower limit. */
const LEAST_LIMIT = 2048

export class SizeLimit {
  readonly #clock: Clock
  /** Of packets, in bytes: the least of what is known. */
  readonly #known: number
  #told = Number.POSITIVE_INFINITY
  /** Payloads of so many bytes or more were refused on this connection. */
  #refused = Number.POSITIVE_INFINITY
  /** At payloads of so many bytes or more the broker ends the connection. */
  #fatal = Number.POSITIVE_INFINITY
  #relearnAt = 0
  #relearnMs = RELEARN_MS
  /** The largest payload that was acknowledged. */
  #taken = LEAST_LIMIT

  /** `known`: what the broker is known to take, whatever it says. */
  constructor(known: number, clock: Clock) {
    this.#known = known
    this.#clock = clock
  }

  /** `told`: the largest packet that the broker takes, as it says. */
  connected(told: number): void {
    this.#told = told
    this.#refused = Number.POSITIVE_INFINITY
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

  acknowledged(payload: number): void {
    this.#taken = Math.max(this.#taken, payload)
    if (payload >= this.#fatal) this.#fatal = Number.POSITIVE_INFINITY
  }

  refused(payload: number): void {
    this.#refused = Math.min(this.#refused, payload)
  }

  endedConnection(payload: number): void {
    this.#fatal = Math.min(this.#fatal, payload)
    this.#relearnAt = this.#clock.elapsed() + this.#relearnMs
    this.#relearnMs *= 2
  }
}
