/** Counts what ends after a while, by outcome, and how long it took: a counter and a histogram in plain numbers. */

export class Timed {
  /** How often each outcome was counted. */
  readonly outcomes = new Map<string, number>()
  /** Upper bounds of the buckets in seconds, ascending. */
  readonly #bounds: readonly number[]
  /** How many were in each bucket; those above the last bound are in `count` only. */
  readonly #buckets: number[]
  #count = 0
  #seconds = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#buckets = bounds.map(() => 0)
  }

  add(outcome: string, ms: number): void {
    const seconds = ms / 1000
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    this.#count += 1
    this.#seconds += seconds
    const bucket = this.#bounds.findIndex((bound) => seconds <= bound)
    if (bucket >= 0) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1
  }

  get count(): number {
    return this.#count
  }

  /** All durations together. */
  get seconds(): number {
    return this.#seconds
  }

  /** Each bound with how many took no longer. */
  *cumulative(): Iterable<readonly [bound: number, count: number]> {
    let count = 0
    for (const [index, bound] of this.#bounds.entries()) {
      count += this.#buckets[index] ?? 0
      yield [bound, count]
    }
  }
}
