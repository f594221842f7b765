/** How often a password may be tried: by one address, and by all together. */
import type { Clock } from '../base/clock.ts'

interface Limit {
  /** At once. */
  readonly most: number
  /** Until one more is possible. */
  readonly everyMs: number
}

const OF_ONE: Limit = { most: 5, everyMs: 30_000 }
const OF_ALL: Limit = { most: 30, everyMs: 2_000 }
const MAX_ADDRESSES = 1000

/** How many tries are used up, which fades with time. */
interface Bucket {
  used: number
  at: number
}

export class Tries {
  readonly #clock: Clock
  /** The longest unused first. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #all: Bucket

  constructor(clock: Clock) {
    this.#clock = clock
    this.#all = { used: 0, at: clock.elapsed() }
  }

  /** Counts a try. Returns 0, or for how many milliseconds there is none. */
  take(address: string): number {
    const key = networkOf(address)
    const own = this.#buckets.get(key) ?? { used: 0, at: this.#clock.elapsed() }
    this.#buckets.delete(key)
    this.#buckets.set(key, own)
    for (const oldest of this.#buckets.keys()) if (this.#buckets.size > MAX_ADDRESSES) this.#buckets.delete(oldest)
    const wait = Math.max(this.#waitOf(own, OF_ONE), this.#waitOf(this.#all, OF_ALL))
    if (wait > 0) return wait
    own.used += 1
    this.#all.used += 1
    return 0
  }

  /** Gives back the tries of an address that knew the password. */
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

/** Whoever has an IPv6 address has 2^64 of them. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = ''] = address.split('::')
  return head.split(':').slice(0, 4).join(':')
}
