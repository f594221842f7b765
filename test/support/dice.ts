/** Chance that can be had again: everything drawn follows from the seed. */

/** Numbers from 0 to under 1, the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

export class Dice {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = randomOf(seed)
  }

  below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  pick<const T>(from: readonly T[]): T {
    const found = from[this.below(from.length)]
    if (found === undefined) throw new Error('there is nothing to pick from')
    return found
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }

  /** Text that no command, hub or app is called. */
  word(): string {
    return `x${this.below(1e9).toString(36)}`
  }
}
