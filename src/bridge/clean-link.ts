/** The MQTT link without an API key in any payload: a hub may name it in an error, and an app anywhere. */
import type { Live } from '../config/options.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import { ApiKeys } from './api-keys.ts'
import type { BridgeLink } from './bridge.ts'

export class CleanLink implements BridgeLink {
  readonly #link: BridgeLink
  readonly #keys: ApiKeys

  constructor(link: BridgeLink, live: Live) {
    this.#link = link
    this.#keys = new ApiKeys(live)
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

  readTransient(): void {
    this.#link.readTransient()
  }

  startOver(): void {
    this.#link.startOver()
  }

  /** A payload without API keys. */
  clean(payload: string): string {
    return this.#keys.scrubber.payload(payload)
  }
}
