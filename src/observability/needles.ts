/** Looks for many texts in another at once, in time that follows from the length of the one that is searched. */

/** From this length on, it is remembered where a text agrees with the beginning of another. */
const LONG = 32

/** For each place in a text: how many of its characters from there on are those that the text begins with. */
function selfAgreement(text: string): Uint32Array {
  const agreement = new Uint32Array(text.length)
  let start = 0
  let end = 0
  for (let at = 1; at < text.length; at += 1) {
    let same = at < end ? Math.min(end - at, agreement[at - start] ?? 0) : 0
    while (at + same < text.length && text.charCodeAt(same) === text.charCodeAt(at + same)) same += 1
    agreement[at] = same
    if (at + same > end) [start, end] = [at, at + same]
  }
  return agreement
}

/** Compares the beginnings of needles with places in a text, in rising order, without comparing its characters again (Z algorithm). */
export class Agreement {
  readonly #text: string
  /** Needle → the last place from which the text agrees with a long part of it. */
  #last: Map<string, { readonly start: number; readonly end: number; own?: Uint32Array }> | undefined

  constructor(text: string) {
    this.#text = text
  }

  /** How many of the first `limit` characters of a needle stand there. */
  at(start: number, needle: string, limit = needle.length): number {
    const last = this.#last?.get(needle)
    let same = 0
    if (last !== undefined && last.start < start && start < last.end) {
      // The text there is a part of the needle.
      last.own ??= selfAgreement(needle)
      same = Math.min(last.own[start - last.start] ?? 0, last.end - start)
      if (same < last.end - start) return same
    }
    while (same < limit && this.#text.charCodeAt(start + same) === needle.charCodeAt(same)) same += 1
    if (same >= LONG) {
      this.#last ??= new Map()
      this.#last.set(needle, { start, end: start + same, ...(last?.own && { own: last.own }) })
    }
    return same
  }
}

/** Characters that are looked at together. */
const BLOCK = 3
const TABLE_SIZE = 1 << 14
/** More would not let the search skip more of a text of ordinary size. */
const MAX_WINDOW = 64

/**
 * A thousand hubs have a thousand keys, and each payload is searched for all of them. By Wu and Manber: where a block of
 * the text is not part of any needle's beginning, no needle begins near it.
 */
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
    let agreement: Agreement | undefined
    for (let at = this.#window - 1; at < text.length; ) {
      const hash = hashAt(text, at)
      const skip = this.#skips[hash] ?? 1
      if (skip === 0) {
        agreement ??= new Agreement(text)
        if (this.#beginsAt(agreement, at - this.#window + 1, hash)) return true
      }
      at += Math.max(1, skip)
    }
    return false
  }

  #beginsAt(agreement: Agreement, at: number, hash: number): boolean {
    return this.#candidates.get(hash)?.some((needle) => agreement.at(at, needle) === needle.length) === true
  }
}

/** The hash of the block that ends there. */
function hashAt(text: string, end: number): number {
  const hash = (text.charCodeAt(end - 2) * 31 + text.charCodeAt(end - 1)) * 31 + text.charCodeAt(end)
  return hash & (TABLE_SIZE - 1)
}
