/** Reproducible random numbers: the same seed gives the same numbers (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** Returns an integer from `min` to `max`, both inclusive. */
  int(min: number, max: number): number {
    return min + this.below(max - min + 1)
  }

  /** Returns an integer from 0 (inclusive) to `n` (exclusive). */
  below(n: number): number {
    return Math.floor(this.next() * n)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<const T>(list: readonly T[]): T {
    const found = list[this.below(list.length)]
    if (found === undefined) throw new Error('nothing to pick from')
    return found
  }

  shuffle<T>(list: readonly T[]): T[] {
    return list
      .map((one) => ({ one, order: this.next() }))
      .sort((a, b) => a.order - b.order)
      .map(({ one }) => one)
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }

  /** Returns a word that is not the name of a command, hub or app. */
  word(): string {
    return `x${this.below(1e9).toString(36)}`
  }

  /** Returns an independent generator, so that additional draws from one generator do not change the other. */
  fork(label: string): Random {
    let hash = 0x811c9dc5
    for (const char of label) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
    return new Random(hash ^ this.int(0, 0x7fffffff))
  }
}
