/** How often a secret may be tried: by one address, and by all together. */
import { Bucket } from '../../base/bucket.ts'
import type { Clock } from '../../base/clock.ts'
import { networkOf } from './sender.ts'

const OF_ONE = { most: 5, everyMs: 30_000 }
const OF_ALL = { most: 30, everyMs: 2_000 }
/** These are for addresses that have not failed: many that try wrong ones must not keep all others out. */
const FOR_OTHERS = 10
const MAX_ADDRESSES = 1000

export class LoginLimit {
  readonly #clock: Clock
  /** Of networks that have tried, and not known it since; the longest unused first. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #all: Bucket

  constructor(clock: Clock) {
    this.#clock = clock
    this.#all = new Bucket(clock, OF_ALL)
  }

  /** Counts an attempt and returns 0, or returns the milliseconds until the next attempt is allowed. */
  take(address: string): number {
    const key = networkOf(address)
    const known = this.#buckets.get(key)
    const own = known ?? new Bucket(this.#clock, OF_ONE)
    const wait = Math.max(own.wait(), this.#all.wait(known && FOR_OTHERS))
    if (wait > 0) return wait
    this.#buckets.delete(key)
    this.#buckets.set(key, own)
    for (const oldest of this.#buckets.keys()) if (this.#buckets.size > MAX_ADDRESSES) this.#buckets.delete(oldest)
    own.take()
    this.#all.take()
    return 0
  }

  /** Gives back the tries of an address that knew it. */
  forgive(address: string): void {
    this.#buckets.delete(networkOf(address))
    this.#all.putBack()
  }
}
