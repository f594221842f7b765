/**
 * Masks the API keys of all hubs and the tokens of this program's own API in strings. Passwords are not masked, because
 * users may choose words such as `homeassistant`, which occur in topics and payloads.
 */
import type { Config } from '../config/options.ts'
import { Scrubber } from './scrub.ts'

/** Shorter keys are not masked, because they may be ordinary words. */
const SHORTEST_KEY = 8

/** Maximum number of nested encodings to undo. Other programs undo fewer, and a hostile name could have thousands. */
const MAX_LEVELS = 8

/** Decodes percent-encoding once. Invalid UTF-8 cannot hide a key, because it is decoded to replacement characters. */
const decodedOnce = (text: string) =>
  text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (codes) => Buffer.from(codes.replaceAll('%', ''), 'hex').toString())

export class ApiKeys {
  readonly scrubber = new Scrubber([])

  constructor(live: { readonly value: Config; onReplaced: (config: Config) => void }) {
    this.#addAll(live.value)
    live.onReplaced = (config) => this.#addAll(config)
  }

  /** Keeps previous keys and tokens, because queued messages may still contain them. */
  #addAll({ hubs, http }: Config): void {
    const keys = Object.values(hubs).map(({ api_key }) => api_key)
    const tokens = [...http.tokens.values()].map(({ token }) => token)
    for (const key of [...keys, ...tokens]) if (key.length >= SHORTEST_KEY) this.scrubber.add(key)
  }

  readonly clean = (text: string): string => this.scrubber.text(text)

  readonly add = (secret: string): void => this.scrubber.add(secret)

  readonly redact = (payload: string): string => this.scrubber.payload(payload)

  /** Returns whether a name contains a secret, plain or encoded. Names become topics, and topics are not masked. */
  areIn(name: string): boolean {
    const { scrubber } = this
    let text = name
    for (let levels = 0; levels <= MAX_LEVELS; levels += 1) {
      if (scrubber.text(text) !== text) return true
      const decoded = decodedOnce(text)
      if (decoded === text) return false
      text = decoded
    }
    return false
  }
}
