/**
 * The MQTT link without an API key in any payload: a hub may name it in an error, and an app anywhere. Other secrets are
 * chosen by people and may be words, such as `homeassistant`, without which no topic of a payload would be right.
 */
import type { Live } from '../config/options.ts'
import { Scrubber } from '../log/scrub.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import type { BridgeLink } from './bridge.ts'

/** Shorter keys may be words too. */
const SHORTEST_KEY = 8

export class CleanLink implements BridgeLink {
  readonly #link: BridgeLink
  readonly #live: Live
  /** The hubs of the configuration that the scrubber was made for. */
  #hubs: Live['value']['hubs'] | undefined
  readonly #scrubber = new Scrubber([])

  constructor(link: BridgeLink, live: Live) {
    this.#link = link
    this.#live = live
  }

  hold(topic: string, payload: string | null): void {
    this.#link.hold(topic, payload === null ? null : this.clean(payload))
  }

  send(topic: string, payload: string, options?: SendOptions): void {
    const { ifRefused } = options ?? {}
    const again = (why: 'too_large' | 'denied') => {
      const other = ifRefused?.(why)
      return other && { ...other, payload: this.clean(other.payload) }
    }
    this.#link.send(topic, this.clean(payload), ifRefused ? { ...options, ifRefused: again } : options)
  }

  isCurrent(message: Message): boolean {
    return this.#link.isCurrent(message)
  }

  status(): Pick<LinkStatus, 'protocol'> {
    return this.#link.status()
  }

  sweep(owned: (topic: string, payload: string) => boolean): number {
    return this.#link.sweep(owned)
  }

  refresh(topics: Iterable<string>): void {
    this.#link.refresh(topics)
  }

  setWriting(writing: boolean): void {
    this.#link.setWriting(writing)
  }

  startOver(): void {
    this.#link.startOver()
  }

  /** A payload without API keys. */
  clean(payload: string): string {
    const { hubs } = this.#live.value
    if (hubs !== this.#hubs) {
      this.#hubs = hubs
      // Keys of before stay: what was heard of them may still be on its way.
      for (const { api_key } of Object.values(hubs)) if (api_key.length >= SHORTEST_KEY) this.#scrubber.add(api_key)
    }
    return this.#scrubber.payload(payload)
  }
}
