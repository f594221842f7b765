/**
 * Takes the API keys of all hubs and the tokens of this program's own API out of texts. Passwords are chosen by people and
 * may be words, such as `homeassistant`, without which no topic of a payload would be right.
 */
import type { Live } from '../config/options.ts'
import { Scrubber } from '../log/scrub.ts'

/** Shorter keys may be words too. */
const SHORTEST_KEY = 8

/** What is encoded more often is read by nothing; a long name could be so thousands of times. */
const MOST_LEVELS = 8

/** Bytes that are not UTF-8 hide nothing: a replacement character stands for them alone. */
const decodedOnce = (text: string) =>
  text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (codes) => Buffer.from(codes.replaceAll('%', ''), 'hex').toString())

export class ApiKeys {
  readonly #live: Live
  /** The configuration that the scrubber was made for. */
  #config: Live['value'] | undefined
  readonly #known = new Scrubber([])

  constructor(live: Live) {
    this.#live = live
  }

  /** For texts, and for JSON. */
  get scrubber(): Scrubber {
    const { value } = this.#live
    if (value !== this.#config) {
      this.#config = value
      // Keys of before stay: what was heard of them may still be on its way.
      const keys = Object.values(value.hubs).map(({ api_key }) => api_key)
      const tokens = [...value.http.tokens.values()].map(({ token }) => token)
      for (const key of [...keys, ...tokens]) if (key.length >= SHORTEST_KEY) this.#known.add(key)
    }
    return this.#known
  }

  /** A text without keys and tokens. */
  readonly clean = (text: string): string => this.scrubber.text(text)

  /** A further one, besides those of the configuration. */
  readonly add = (secret: string): void => this.scrubber.add(secret)

  /** The payload of a message without them. */
  readonly redact = (payload: string): string => this.scrubber.payload(payload)

  /** Whether a name from a hub holds a key or a token, percent-encoded or not: names become topics, in which nothing is masked. */
  areIn(name: string): boolean {
    const { scrubber } = this
    let text = name
    for (let levels = 0; levels <= MOST_LEVELS; levels += 1) {
      if (scrubber.text(text) !== text) return true
      const decoded = decodedOnce(text)
      if (decoded === text) return false
      text = decoded
    }
    return false
  }
}
