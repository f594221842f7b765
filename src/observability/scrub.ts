/** Masks known secrets anywhere in log lines. Masking by key would miss messages, stacks, arrays and unlisted keys. */

const MASK = '***'

/** A shorter secret is part of so many words and numbers that masking them would reveal the secret. */
const SHORTEST_SCRUBBED = 4

/** Top-level keys that only the logger itself fills. */
const OWN_KEYS = new Set(['level', 'time', 'pid'])

export class Scrubber {
  readonly #secrets = new Set<string>()
  /** Rebuilt on demand after additions, because a thousand secrets may be added in a row. */
  #spellings: Spellings | undefined

  constructor(secrets: Iterable<string>) {
    for (const secret of secrets) this.add(secret)
  }

  /** Ignores secrets of fewer than four characters. */
  add(secret: string): void {
    if (secret.length < SHORTEST_SCRUBBED || this.#secrets.has(secret)) return
    this.#secrets.add(secret)
    this.#spellings = undefined
  }

  text(text: string): string {
    const spellings = this.#spellings ?? this.#prepare()
    const found = spellings.find(text)
    if (found === 'none') return text
    return found === 'all' ? MASK : spellings.mask(text)
  }

  /** Masks the parsed values, because masking a secret such as `1767` in the text of the line may break the JSON. */
  line(line: string): string {
    return (this.#spellings ?? this.#prepare()).find(line) === 'none' ? line : this.#json(line, true, '\n')
  }

  /** Masks the secrets in JSON without a final line break, or in other text. */
  payload(payload: string): string {
    return (this.#spellings ?? this.#prepare()).find(payload) === 'none' ? payload : this.#json(payload, false, '')
  }

  #prepare(): Spellings {
    this.#spellings = new Spellings([...this.#secrets])
    return this.#spellings
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

/** A decoded character, with its code point and the end of its encoded form in the text. */
interface Unit {
  readonly code: number
  readonly end: number
}

const BACKSLASH = 0x5c
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20
/** Maximum number of nested encodings. Programs that read the text decode fewer. */
const MAX_LEVELS = 8
const BACKSLASHES = '\\'.repeat(MAX_LEVELS + 1)
const NONE: readonly Unit[] = []
/** A text is masked entirely if it has more encoded characters than this that also occur in a secret. */
const MAX_ENCODED = 4096
/**
 * A text is hostile if the search needs more comparisons than this for each character, and more than `MIN_COMPARED` in
 * total. Comparisons of plain characters do not count.
 */
const MAX_COMPARED = 4
const MIN_COMPARED = 1 << 20

const isSign = (code: number) => code === BACKSLASH || code === PERCENT || code === PLUS

/** Characters that JSON escapes stand for, by the letter after the backslash. */
const SHORT_ESCAPES: ReadonlyMap<number, number> = new Map(
  ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
)

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
}

/** Returns `NaN` if there is no hexadecimal number. */
function hexAt(text: string, at: number, digits: number): number {
  let value = 0
  for (let i = at; i < at + digits; i += 1) value = value * 16 + hexDigit(text.charCodeAt(i))
  return value
}

/** Reads the byte after a percent sign, which may be encoded several times: `2F` and `252F`. */
function byteAt(text: string, at: number): Unit {
  let end = at
  for (let level = 0; level < MAX_LEVELS && hexAt(text, end, 2) === PERCENT; level += 1) end += 2
  return { code: hexAt(text, end, 2), end: end + 2 }
}

/** Reads the character after a backslash. The letter of a short escape may be percent-encoded, as in `%5C%2F`. */
function jsonAt(text: string, at: number): Unit | undefined {
  const letter = text.charCodeAt(at)
  if (letter === PERCENT) {
    const sign = byteAt(text, at + 1)
    const code = SHORT_ESCAPES.get(sign.code)
    return code === undefined ? undefined : { code, end: sign.end }
  }
  if (letter === 0x75) {
    const code = hexAt(text, at + 1, 4)
    return Number.isNaN(code) ? undefined : { code, end: at + 5 }
  }
  const code = SHORT_ESCAPES.get(letter)
  return code === undefined ? undefined : { code, end: at + 1 }
}

/** Reads the character after a percent sign, which may be several bytes with a percent sign each. */
function percentAt(text: string, at: number): Unit | undefined {
  const lead = hexAt(text, at, 2)
  if (lead < 0x80) return { code: lead, end: at + 2 }
  if (Number.isNaN(lead)) return undefined
  const more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1
  let code = lead & (0x3f >> more)
  let end = at + 2
  for (let i = 0; i < more; i += 1) {
    if (text.charCodeAt(end) !== PERCENT) return undefined
    const byte = byteAt(text, end + 1)
    if (!(byte.code >= 0x80 && byte.code < 0xc0)) return undefined
    code = (code << 6) | (byte.code & 0x3f)
    end = byte.end
  }
  return code > 0x10ffff ? undefined : { code, end }
}

/** Returns the possible decodings of the character at `at`, level by level, except the plain character. */
function encodedAt(text: string, at: number): readonly Unit[] {
  let { code, end }: Unit = { code: text.charCodeAt(at), end: at + 1 }
  if (code === PLUS) return [{ code: SPACE, end }]
  // If eight more backslashes follow a backslash, every decoding is a backslash too, so the plain character suffices.
  if (!isSign(code) || text.startsWith(BACKSLASHES, at)) return NONE
  let units = NONE
  while (units.length < MAX_LEVELS && (code === BACKSLASH || code === PERCENT)) {
    const unit = code === PERCENT ? percentAt(text, end) : jsonAt(text, end)
    if (unit === undefined) break
    units = [...units, unit]
    // Stop after an encoded letter, because a long run of encoded backslashes would have too many decodings.
    if (code === BACKSLASH && text.charCodeAt(end) === PERCENT) break
    ;({ code, end } = unit)
  }
  return units
}

const add = (places: number[], place: number) => {
  if (!places.includes(place)) places.push(place)
}

const pairOf = (first: number, second: number) => first * 0x10000 + second
const pairIn = (text: string) => pairOf(text.charCodeAt(0), text.charCodeAt(1))

const SLOTS = 1 << 16
const MAX_SKIP = 255
/** Maps three code units to one of the slots. */
const slotAt = (text: string, at: number) =>
  ((text.charCodeAt(at) << 10) ^ (text.charCodeAt(at + 1) << 5) ^ text.charCodeAt(at + 2)) & (SLOTS - 1)

/** A secret, and the number of its characters before the first character that may begin an encoded character. */
interface Sought {
  readonly secret: string
  readonly plain: number
}

/** One search. Counts its comparisons, to end the search of a text that is written to slow it down. */
class Progress {
  readonly text: string
  /** Number of compared characters and pairs, except plain characters. */
  compared = 0

  constructor(text: string) {
    this.text = text
  }

  /** Whether the text was written to slow down the search. No encoder produces such text. */
  get isHostile(): boolean {
    return this.compared > MIN_COMPARED && this.compared > MAX_COMPARED * this.text.length
  }

  /** Returns the end of the secret that begins at `start`, however its characters are encoded; -1 if there is none. */
  endOf({ secret, plain }: Sought, start: number): number {
    const { text } = this
    let same = 0
    while (same < plain && text.charCodeAt(start + same) === secret.charCodeAt(same)) same += 1
    if (same < secret.length && !isSign(text.charCodeAt(start + same))) return -1
    return this.#endFrom(secret, same, start + same)
  }

  /** Returns the end of a secret whose first code units end at `start`; -1 if the rest does not match. */
  #endFrom(secret: string, first: number, start: number): number {
    const { text } = this
    let places = [start]
    /** Positions after a decoded character that stands for two code units of the secret. */
    let beyond: number[] = []
    for (let i = first; i < secret.length && !this.isHostile; i += 1) {
      const unit = secret.charCodeAt(i)
      const next = beyond
      beyond = []
      for (const at of places) {
        this.compared += 1
        const itself = { code: text.charCodeAt(at), end: at + 1 }
        for (const { code, end } of [itself, ...encodedAt(text, at)]) {
          if (code === unit) add(next, end)
          else if (code > 0xffff && code === secret.codePointAt(i)) add(beyond, end)
        }
      }
      places = next
      if (places.length + beyond.length === 0) break
    }
    return Math.max(-1, ...places)
  }
}

/**
 * Finds secrets in a text even if they are encoded: each character may be plain, a JSON escape or `%XX`, in any
 * mixture, and may be encoded several times.
 */
class Spellings {
  /** The secrets by their first two code units. */
  readonly #secrets: ReadonlyMap<number, readonly Sought[]>
  /** The length of the shortest secret; Infinity without secrets. */
  readonly #shortest: number
  /** How far the search for plain secrets may advance after three characters, by the `slotAt` of these. */
  readonly #skips: Uint8Array
  readonly #longest: number
  /** All characters of the secrets, as code points and as code units. */
  readonly #codes = new Set<number>()

  /** @param secrets each of at least two code units */
  constructor(secrets: readonly string[]) {
    const sought = secrets.map((secret) => ({ secret, plain: secret.search(/[\\%+]|$/) }))
    this.#secrets = Map.groupBy(sought, ({ secret }) => pairIn(secret))
    this.#shortest = secrets.reduce((min, { length }) => Math.min(min, length), Number.POSITIVE_INFINITY)
    this.#skips = new Uint8Array(SLOTS).fill(Math.min(this.#shortest - 2, MAX_SKIP))
    for (const secret of secrets) {
      for (let i = 0; i + 2 < this.#shortest; i += 1) {
        const slot = slotAt(secret, i)
        this.#skips[slot] = Math.min(this.#skips[slot] ?? 0, this.#shortest - 3 - i)
      }
    }
    this.#longest = secrets.reduce((max, { length }) => Math.max(max, length), 0)
    for (const secret of secrets) {
      for (let i = 0; i < secret.length; i += 1) this.#codes.add(secret.charCodeAt(i)).add(secret.codePointAt(i) ?? 0)
    }
  }

  /**
   * Returns whether text or JSON contains a secret in any encoding. Returns `all`, without a further search, if the text
   * seems to be written to make the search slow, so that the whole text must be masked.
   */
  find(text: string): 'none' | 'some' | 'all' {
    if (this.#hasPlain(text)) return 'some'
    // Most texts contain no encoded characters.
    if (!/[\\%+]/.test(text)) return 'none'
    const progress = new Progress(text)
    let count = 0
    for (const sign of '\\%+') {
      let from = 0
      for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) {
        if (!encodedAt(text, at).some(({ code }) => this.#codes.has(code))) continue
        count += 1
        if (count > MAX_ENCODED) return 'all'
        // A secret whose first encoded character is at `at` begins at most `#longest` characters earlier.
        const isFound = this.#startsWithin(progress, Math.max(from, at - this.#longest), at)
        if (progress.isHostile) return 'all'
        if (isFound) return 'some'
        from = at + 1
      }
    }
    return 'none'
  }

  /**
   * Searches like Wu and Manber: most sequences of three characters occur in no secret. A regular expression for the
   * keys of 1,000 hubs takes twelve times as long.
   */
  #hasPlain(text: string): boolean {
    let start = 0
    while (start + this.#shortest <= text.length) {
      const skip = this.#skips[slotAt(text, start + this.#shortest - 3)] ?? 0
      if (skip === 0) {
        const pair = pairOf(text.charCodeAt(start), text.charCodeAt(start + 1))
        if (this.#secrets.get(pair)?.some(({ secret }) => text.startsWith(secret, start))) return true
      }
      start += Math.max(1, skip)
    }
    return false
  }

  /** Returns the text with a mask in place of each secret, including overlapping secrets. */
  mask(text: string): string {
    const progress = new Progress(text)
    let clean = ''
    let done = 0
    for (let at = 0; at < text.length; at += 1) {
      const end = this.#endAt(progress, at)
      if (progress.isHostile) return MASK
      if (end < 0) continue
      if (at >= done) clean += text.slice(done, at) + MASK
      done = Math.max(done, end)
    }
    return clean + text.slice(done)
  }

  #startsWithin(progress: Progress, first: number, last: number): boolean {
    for (let start = first; start <= last; start += 1) if (this.#endAt(progress, start) >= 0) return true
    return false
  }

  /** Returns the end of the longest secret that begins at `at`; -1 if there is none. */
  #endAt(progress: Progress, at: number): number {
    const { text } = progress
    const first = text.charCodeAt(at)
    const second = text.charCodeAt(at + 1)
    if (!isSign(first) && !isSign(second)) return this.#longestOf(progress, at, pairOf(first, second))
    // Check each pair only once, because several decodings of the text may begin with the same two characters.
    const pairs = new Set<number>()
    for (const { code, end } of [{ code: first, end: at + 1 }, ...encodedAt(text, at)]) {
      if (code > 0xffff) pairs.add(pairIn(String.fromCodePoint(code)))
      else {
        pairs.add(pairOf(code, text.charCodeAt(end)))
        for (const next of encodedAt(text, end)) pairs.add(pairOf(code, String.fromCodePoint(next.code).charCodeAt(0)))
      }
    }
    progress.compared += pairs.size
    let end = -1
    for (const pair of pairs) end = Math.max(end, this.#longestOf(progress, at, pair))
    return end
  }

  #longestOf(progress: Progress, at: number, pair: number): number {
    let end = -1
    for (const sought of this.#secrets.get(pair) ?? []) end = Math.max(end, progress.endOf(sought, at))
    return end
  }
}
