/**
 * Looks for many texts in another at once: how long that takes follows from the length of the one that is searched, not
 * from how many are looked for. A thousand hubs have a thousand keys, and each payload is searched for all of them.
 */

/** Characters that are looked at together. */
const BLOCK = 3
const TABLE_SIZE = 1 << 14
/** More would not let the search skip more of a text of ordinary size. */
const MAX_WINDOW = 64

/** By Wu and Manber: where a block of the text is not part of any needle's beginning, no needle begins near it. */
export class Needles {
  /** Characters of each needle's beginning that are compared by blocks: all that the shortest one has, at most 64. */
  readonly #window: number
  /** By a block's hash: how far the search may go on at least. */
  readonly #skips: Uint8Array
  /** By the hash of the block with which their beginnings end. */
  readonly #candidates = new Map<number, string[]>()

  /** Each of at least three characters. */
  constructor(needles: readonly string[]) {
    this.#window = needles.reduce((least, { length }) => Math.min(least, length), MAX_WINDOW)
    const farthest = this.#window - BLOCK + 1
    this.#skips = new Uint8Array(TABLE_SIZE).fill(farthest)
    for (const needle of needles) this.#add(needle)
  }

  #add(needle: string): void {
    const end = this.#window - 1
    for (let at = BLOCK - 1; at <= end; at += 1) {
      const hash = hashAt(needle, at)
      this.#skips[hash] = Math.min(this.#skips[hash] ?? 0, end - at)
    }
    const hash = hashAt(needle, end)
    const same = this.#candidates.get(hash)
    if (same === undefined) this.#candidates.set(hash, [needle])
    else same.push(needle)
  }

  /** Whether any of them is part of a text. */
  areIn(text: string): boolean {
    if (this.#candidates.size === 0) return false
    for (let at = this.#window - 1; at < text.length; ) {
      const hash = hashAt(text, at)
      const skip = this.#skips[hash] ?? 1
      if (skip === 0 && this.#beginsAt(text, at - this.#window + 1, hash)) return true
      at += Math.max(1, skip)
    }
    return false
  }

  #beginsAt(text: string, at: number, hash: number): boolean {
    return this.#candidates.get(hash)?.some((needle) => text.startsWith(needle, at)) === true
  }
}

/** Of the block that ends there. */
function hashAt(text: string, end: number): number {
  const hash = (text.charCodeAt(end - 2) * 31 + text.charCodeAt(end - 1)) * 31 + text.charCodeAt(end)
  return hash & (TABLE_SIZE - 1)
}
