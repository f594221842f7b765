/** The MQTT link without an API key or the start-up token in any payload: a hub may name it in an error, and an app anywhere. */
import type { Live } from '../config/options.ts'
import type { Recall } from '../mqtt/retained.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import { ApiKeys } from './api-keys.ts'
import type { BridgeLink } from './bridge.ts'

/** Looks on at what leaves. */
export interface Onlooker {
  held(topic: string, payload: string | null): void
  /** Somebody else tells of these topics from now on. */
  released(isOthers: (topic: string) => boolean): void
  /** Not called for answers. */
  sent(topic: string, payload: string): void
}

export class CleanLink implements BridgeLink {
  readonly #link: BridgeLink
  readonly #keys: ApiKeys
  readonly #onlooker: Onlooker
  /** Each with the one that gives clean payloads: many topics share one. */
  readonly #recalls = new WeakMap<Recall, Recall>()

  constructor(link: BridgeLink, live: Live, onlooker: Onlooker) {
    this.#link = link
    this.#keys = new ApiKeys(live)
    this.#onlooker = onlooker
  }

  hold(topic: string, payload: string | null, recall?: Recall): void {
    const clean = payload === null ? null : this.clean(payload)
    this.#link.hold(topic, clean, recall && this.#cleaned(recall))
    this.#onlooker.held(topic, clean)
  }

  #cleaned(recall: Recall): Recall {
    const known = this.#recalls.get(recall)
    if (known !== undefined) return known
    const cleaned: Recall = (topic) => {
      const payload = recall(topic)
      return payload === undefined ? undefined : this.clean(payload)
    }
    this.#recalls.set(recall, cleaned)
    return cleaned
  }

  send(topic: string, payload: string, options?: SendOptions): void {
    const { ifRefused } = options ?? {}
    const again = (why: 'too_large' | 'denied') => {
      const other = ifRefused?.(why)
      return other && { ...other, payload: this.clean(other.payload) }
    }
    const clean = this.clean(payload)
    this.#link.send(topic, clean, ifRefused ? { ...options, ifRefused: again } : options)
    if (!options?.isAnswer) this.#onlooker.sent(topic, clean)
  }

  isCurrent(message: Message): boolean {
    return this.#link.isCurrent(message)
  }

  status(): Pick<LinkStatus, 'protocol' | 'queued'> {
    return this.#link.status()
  }

  sweep(owned: (topic: string, payload: string) => boolean): number {
    return this.#link.sweep(owned)
  }

  release(isOthers: (topic: string) => boolean): void {
    this.#link.release(isOthers)
    this.#onlooker.released(isOthers)
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

  /** Takes one more out from now on. */
  addSecret(secret: string): void {
    this.#keys.scrubber.add(secret)
  }

  /** A payload without API keys. */
  clean(payload: string): string {
    return this.#keys.scrubber.payload(payload)
  }
}
