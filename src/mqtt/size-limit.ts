/** How large a message the broker takes: as it says, as it is configured, and as refusals and lost connections show. */
import type { Clock } from '../base/clock.ts'

/** Fixed header, lengths and packet id. */
const PACKET_OVERHEAD_BYTES = 16
/** The broker may be configured anew. How long until a size is tried again; it doubles with each try in vain. */
const RELEARN_MS = 5 * 60_000
const MOST_DOUBLINGS = 8
/** Hardly a broker has a lower limit: smaller payloads become suspect only by what shows the opposite. */
const LEAST_LIMIT = 2048

export class SizeLimit {
  readonly #clock: Clock
  /** Of packets, in bytes: the least of what is known. */
  readonly #known: number
  #told = Number.POSITIVE_INFINITY
  /** Payloads of so many bytes or more were found too large on this connection. */
  #refused = Number.POSITIVE_INFINITY
  /** At payloads of so many bytes or more the broker ended a connection. */
  #fatal = Number.POSITIVE_INFINITY
  /** The largest payload that was acknowledged, as far as that still counts. */
  #taken = LEAST_LIMIT
  /** Whether a connection was lost with a larger one on its way. */
  #doubted = false
  #relearnAt = 0
  #triesInVain = 0

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

  /** In how many milliseconds a size that ended connections may be tried again; undefined: there is none. */
  get relearnInMs(): number | undefined {
    return this.#fatal === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.#relearnAt - this.#clock.elapsed())
  }

  /** The time of `relearnInMs` is over. A timer may be early by a fraction of a millisecond, so it is not asked again. */
  relearn(): void {
    this.#relearnAt = 0
    this.#refused = Number.POSITIVE_INFINITY
  }

  /** `besides`: the bytes of topic and properties. */
  allows(payload: number, besides: () => number): boolean {
    if (payload >= this.#refused) return false
    const most = Math.min(this.#known, this.#told)
    return most === Number.POSITIVE_INFINITY || payload + besides() + PACKET_OVERHEAD_BYTES <= most
  }

  /** Whether no payload of this size has been acknowledged so far. */
  isUntried(payload: number): boolean {
    return payload > this.#taken
  }

  isSuspect(payload: number): boolean {
    return payload >= this.#fatal || (this.#doubted && payload > this.#taken)
  }

  /** Whether to try a suspect even if that costs the connection. */
  isWorthALoss(payload: number): boolean {
    return payload < this.#fatal || this.#clock.elapsed() >= this.#relearnAt
  }

  /** A payload was acknowledged. */
  acknowledged(payload: number): void {
    this.#taken = Math.max(this.#taken, payload)
    if (payload < this.#fatal) return
    this.#fatal = Number.POSITIVE_INFINITY
    this.#triesInVain = 0
  }

  /** The broker does not take a payload of this size. */
  refused(payload: number): void {
    this.#refused = Math.min(this.#refused, payload)
    // It is another broker than the one that took more, or configured anew.
    if (payload <= this.#taken) this.#taken = 0
  }

  /** A connection was lost with a payload on its way that is larger than any that was acknowledged. */
  doubt(): void {
    this.#doubted = true
  }

  /** Two were lost in a row with these on their way: what another broker has taken, or this one before, counts no more. */
  doubtAgain(items: readonly { readonly sentBytes: number }[]): void {
    if (!items.some(({ sentBytes }) => sentBytes > LEAST_LIMIT)) return
    this.#taken = LEAST_LIMIT
    this.#doubted = true
  }

  /** All suspects have been tried. */
  settled(): void {
    this.#doubted = this.#fatal !== Number.POSITIVE_INFINITY
  }

  /** A payload of this size ends connections. */
  endedConnection(payload: number): void {
    this.#doubted = true
    if (payload >= this.#fatal) this.#triesInVain = Math.min(MOST_DOUBLINGS, this.#triesInVain + 1)
    this.#fatal = Math.min(this.#fatal, payload)
    this.#relearnAt = this.#clock.elapsed() + RELEARN_MS * 2 ** this.#triesInVain
  }
}
