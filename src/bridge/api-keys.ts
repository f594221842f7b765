/**
 * Takes the API keys of all hubs out of texts. Other secrets are chosen by people and may be words, such as
 * `homeassistant`, without which no topic of a payload would be right.
 */
import type { Live } from '../config/options.ts'
import { Scrubber } from '../log/scrub.ts'

/** Shorter keys may be words too. */
const SHORTEST_KEY = 8

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
}
