/**
 * Takes the API keys of all hubs out of texts. Other secrets are chosen by people and may be words, such as
 * `homeassistant`, without which no topic of a payload would be right.
 */
import type { Live } from '../config/options.ts'
import { Scrubber } from '../log/scrub.ts'

/** Shorter keys may be words too. */
const SHORTEST_KEY = 8

/** What is encoded more often is read by nothing; a long name could be so thousands of times. */
const MOST_LEVELS = 8

/** What is not UTF-8 stays as it is. */
function decodedOnce(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (codes) => {
    try {
      return decodeURIComponent(codes)
    } catch {
      return codes
    }
  })
}

export class ApiKeys {
  readonly #live: Live
  /** The hubs of the configuration that the scrubber was made for. */
  #hubs: Live['value']['hubs'] | undefined
  readonly #known = new Scrubber([])

  constructor(live: Live) {
    this.#live = live
  }

  /** For texts, and for JSON. */
  get scrubber(): Scrubber {
    const { hubs } = this.#live.value
    if (hubs !== this.#hubs) {
      this.#hubs = hubs
      // Keys of before stay: what was heard of them may still be on its way.
      for (const { api_key } of Object.values(hubs)) if (api_key.length >= SHORTEST_KEY) this.#known.add(api_key)
    }
    return this.#known
  }

  /** Whether a name from a hub holds a key, percent-encoded or not: names become topics, in which nothing is masked. */
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
