/** How often a secret may be tried: by one address, and by all together. */
import type { Clock } from '../base/clock.ts'
import { networkOf } from './address.ts'

interface Limit {
  /** At once. */
  readonly most: number
  /** Until one more is possible. */
  readonly everyMs: number
}

const OF_ONE: Limit = { most: 5, everyMs: 30_000 }
const OF_ALL: Limit = { most: 30, everyMs: 2_000 }
/** The rest is for addresses that have not failed: many that try wrong ones must not keep all others out. */
const OF_FAILED: Limit = { ...OF_ALL, most: 20 }
const MAX_ADDRESSES = 1000

/** How many tries are used up, which fades with time. */
interface Bucket {
  used: number
  at: number
}

export class LoginLimit {
  readonly #clock: Clock
  /** Of networks that have tried, and not known it since; the longest unused first. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #all: Bucket

  constructor(clock: Clock) {
    this.#clock = clock
    this.#all = { used: 0, at: clock.elapsed() }
  }

  /** Counts a try. Returns 0, or for how many milliseconds there is none. */
  take(address: string): number {
    const key = networkOf(address)
    const known = this.#buckets.get(key)
    const own = known ?? { used: 0, at: this.#clock.elapsed() }
    const wait = Math.max(this.#waitOf(own, OF_ONE), this.#waitOf(this.#all, known ? OF_FAILED : OF_ALL))
    if (wait > 0) return wait
    this.#buckets.delete(key)
    this.#buckets.set(key, own)
    for (const oldest of this.#buckets.keys()) if (this.#buckets.size > MAX_ADDRESSES) this.#buckets.delete(oldest)
    own.used += 1
    this.#all.used += 1
    return 0
  }

  /** Gives back the tries of an address that knew it. */
  forgive(address: string): void {
    this.#buckets.delete(networkOf(address))
    this.#all.used = Math.max(0, this.#all.used - 1)
  }

  #waitOf(bucket: Bucket, { most, everyMs }: Limit): number {
    const now = this.#clock.elapsed()
    bucket.used = Math.max(0, bucket.used - (now - bucket.at) / everyMs)
    bucket.at = now
    return Math.max(0, Math.ceil((bucket.used + 1 - most) * everyMs))
  }
}
