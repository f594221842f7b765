/** The bridge's MQTT link with the feed looking on; it stands where secrets have been taken out already. */
import type { BridgeLink } from '../bridge/bridge.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import type { Feed } from './feed.ts'

export class TappedLink implements BridgeLink {
  readonly #link: BridgeLink
  readonly #feed: Feed

  constructor(link: BridgeLink, feed: Feed) {
    this.#link = link
    this.#feed = feed
  }

  hold(topic: string, payload: string | null): void {
    this.#link.hold(topic, payload)
    this.#feed.held(topic, payload)
  }

  send(topic: string, payload: string, options?: SendOptions): void {
    this.#link.send(topic, payload, options)
    // Answers are told under their result topic, wherever they go.
    if (!options?.isAnswer) this.#feed.sent(topic, payload)
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

  readTransient(): void {
    this.#link.readTransient()
  }
}
