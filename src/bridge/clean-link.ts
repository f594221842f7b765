/** The MQTT link without an API key or a token in any payload: a hub may name it in an error, and an app anywhere. */
import type { Live } from '../config/options.ts'
import type { PayloadSource } from '../mqtt/retained.ts'
import type { LinkStatus, Message, SendOptions } from '../mqtt/types.ts'
import { ApiKeys } from './api-keys.ts'
import type { BridgeLink } from './bridge.ts'

/** Looks on at what leaves. */
export interface PublishObserver {
  held(topic: string, payload: string | null): void
  /** Somebody else tells of these topics from now on. */
  released(isOthers: (topic: string) => boolean): void
  /** Not called for answers. */
  sent(topic: string, payload: string): void
}

export class CleanLink implements BridgeLink {
  readonly #link: BridgeLink
  readonly #keys: ApiKeys
  readonly #observer: PublishObserver
  /** Each with the one that gives clean payloads: many topics share one. */
  readonly #sources = new WeakMap<PayloadSource, PayloadSource>()

  constructor(link: BridgeLink, live: Live, observer: PublishObserver) {
    this.#link = link
    this.#keys = new ApiKeys(live)
    this.#observer = observer
  }

  hold(topic: string, payload: string | null, source?: PayloadSource): void {
    const clean = payload === null ? null : this.clean(payload)
    this.#link.hold(topic, clean, source && this.#cleaned(source))
    this.#observer.held(topic, clean)
  }

  #cleaned(source: PayloadSource): PayloadSource {
    const known = this.#sources.get(source)
    if (known !== undefined) return known
    const cleaned: PayloadSource = (topic) => {
      const payload = source(topic)
      return payload === undefined ? undefined : this.clean(payload)
    }
    this.#sources.set(source, cleaned)
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
    if (!options?.isAnswer) this.#observer.sent(topic, clean)
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
    this.#observer.released(isOthers)
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

  /** A payload without API keys and tokens. */
  clean(payload: string): string {
    return this.#keys.scrubber.payload(payload)
  }
}
