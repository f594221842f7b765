/** Masks known secrets anywhere in log lines. Masking by key would miss messages, stacks, arrays and unlisted keys. */
import { Spellings } from './spellings.ts'

const MASK = '***'

/** A shorter secret is part of so many words and numbers that masking them would reveal the secret. */
const SHORTEST_SCRUBBED = 4

/** Top-level keys that only the logger itself fills. */
const OWN_KEYS = new Set(['level', 'time', 'pid'])

interface Search {
  /** Matches any plain secret. V8 compiles it, so the search is fast even for a thousand keys of a thousand hubs. */
  readonly plain: RegExp
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
    // Without secrets, the pattern matches nothing.
    const plain = new RegExp(secrets.map(RegExp.escape).join('|') || '(?!)')
    this.#search = { plain, spellings: new Spellings(secrets) }
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
  if (plain.test(text)) return 'some'
  // Most texts contain no encoded characters.
  return /[\\%+]/.test(text) ? spellings.findEncoded(text) : 'none'
}
