/** Masks known secrets anywhere in log lines. Masking by key would miss messages, stacks, arrays and unlisted keys. */
import { Spellings } from './spellings.ts'

const MASK = '***'

/** A shorter secret is part of so many words and numbers that masking them would reveal the secret. */
const SHORTEST_SCRUBBED = 4

/** Top-level keys that only the logger itself fills. */
const OWN_KEYS = new Set(['level', 'time', 'pid'])

interface Search {
  /** Finds plain secrets. Most strings contain none, and this search is fast. */
  readonly plain: Needles
  readonly spellings: Spellings
}

export class Scrubber {
  readonly #secrets = new Set<string>()
  /** Rebuilt on demand after additions, because a thousand secrets may be added in a row. */
  #search: Search | undefined

  constructor(secrets: Iterable<string>) {
    for (const secret of secrets) this.add(secret)
  }

  /** Ignores secrets of fewer than four characters. */
  add(secret: string): void {
    if (secret.length < SHORTEST_SCRUBBED || this.#secrets.has(secret)) return
    this.#secrets.add(secret)
    this.#search = undefined
  }

  text(text: string): string {
    const search = this.#search ?? this.#prepare()
    const found = find(text, search)
    if (found === 'none') return text
    return found === 'all' ? MASK : search.spellings.mask(text, MASK)
  }

  /** Masks the parsed values, because masking a secret such as `1767` in the text of the line may break the JSON. */
  line(line: string): string {
    return find(line, this.#search ?? this.#prepare()) === 'none' ? line : this.#json(line, true, '\n')
  }

  /** Masks the secrets in JSON without a final line break, or in other text. */
  payload(payload: string): string {
    return find(payload, this.#search ?? this.#prepare()) === 'none' ? payload : this.#json(payload, false, '')
  }

  #prepare(): Search {
    const secrets = [...this.#secrets]
    this.#search = { plain: new Needles(secrets), spellings: new Spellings(secrets) }
    return this.#search
  }

  #json(json: string, ownKeys: boolean, end: string): string {
    try {
      return JSON.stringify(this.#value(JSON.parse(json), ownKeys)) + end
    } catch {
      return this.text(json)
    }
  }

  #value(value: unknown, top: boolean): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') {
      const clean = this.text(String(value))
      return clean === String(value) ? value : clean
    }
    if (Array.isArray(value)) return value.map((item) => this.#value(item, false))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) =>
        top && OWN_KEYS.has(key) ? [key, item] : [this.text(key), this.#value(item, false)],
      ),
    )
  }
}

/** Returns whether text or JSON contains a secret in any spelling; `all` if the whole text must be masked. */
function find(text: string, { plain, spellings }: Search): 'none' | 'some' | 'all' {
  if (plain.areIn(text)) return 'some'
  // Most texts contain no encoded characters.
  return /[\\%+]/.test(text) ? spellings.findEncoded(text) : 'none'
}

const BLOCK = 3
const TABLE_SIZE = 1 << 14
/** Maximum of `#window`. A larger window would not make the search of ordinary text faster. */
const MAX_WINDOW = 64

/**
 * Searches a text for many needles in one pass, in time proportional to the length of the text, because a thousand hubs
 * have a thousand keys, and each payload is searched for all of them. This is the algorithm of Wu and Manber: after a
 * block of the text that is not part of any needle's beginning, the search skips many characters.
 */
class Needles {
  /** Length of the needles' beginnings: the length of the shortest needle, at most 64. */
  readonly #window: number
  /** The number of characters that the search may skip after a block, by the hash of the block. */
  readonly #skips: Uint8Array
  /** Needles, by the hash of the last block of their beginnings. */
  readonly #candidates: ReadonlyMap<number, readonly string[]>

  /** @param needles strings of at least three characters */
  constructor(needles: readonly string[]) {
    this.#window = needles.reduce((least, { length }) => Math.min(least, length), MAX_WINDOW)
    const end = this.#window - 1
    this.#candidates = Map.groupBy(needles, (needle) => hashAt(needle, end))
    this.#skips = new Uint8Array(TABLE_SIZE).fill(end - BLOCK + 2)
    for (const needle of needles) {
      for (let at = BLOCK - 1; at <= end; at += 1) {
        const hash = hashAt(needle, at)
        this.#skips[hash] = Math.min(this.#skips[hash] ?? 0, end - at)
      }
    }
  }

  areIn(text: string): boolean {
    for (let at = this.#window - 1; at < text.length; ) {
      const hash = hashAt(text, at)
      const skip = this.#skips[hash] ?? 1
      const start = at - this.#window + 1
      if (skip === 0 && this.#candidates.get(hash)?.some((needle) => text.startsWith(needle, start))) return true
      at += Math.max(1, skip)
    }
    return false
  }
}

function hashAt(text: string, end: number): number {
  const hash = (text.charCodeAt(end - 2) * 31 + text.charCodeAt(end - 1)) * 31 + text.charCodeAt(end)
  return hash & (TABLE_SIZE - 1)
}
