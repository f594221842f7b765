import type { DiscoveryLink } from '../../../src/home-assistant/publisher.ts'
import type { PayloadSource } from '../../../src/mqtt/retained.ts'

/** A link that records its calls, and a broker that holds earlier messages. */
export class FakeLink implements DiscoveryLink {
  readonly told: string[] = []
  readonly held = new Map<string, string>()
  /** The function that renders the payload of each topic again. */
  readonly recalls = new Map<string, PayloadSource>()
  /** The number of messages that wait for the broker. */
  queued = 0

  hold(topic: string, payload: string | null, recall?: PayloadSource): void {
    if (recall === undefined) this.recalls.delete(topic)
    else this.recalls.set(topic, recall)
    if (this.held.get(topic) === (payload ?? undefined)) return
    this.told.push(payload === null ? `clear ${topic}` : `hold ${topic} ${payload}`)
    if (payload === null) this.held.delete(topic)
    else this.held.set(topic, payload)
  }

  send(topic: string, payload: string): void {
    this.told.push(`send ${topic} ${payload}`)
  }

  release(isOthers: (topic: string) => boolean): void {
    for (const topic of [...this.held.keys()].filter(isOthers)) this.told.push(`release ${topic}`)
  }

  refresh(topics: Iterable<string>): void {
    for (const topic of topics) this.told.push(`again ${topic}`)
  }

  sweep(owned: (topic: string, payload: string) => boolean): number {
    for (const [topic, payload] of this.held) owned(topic, payload)
    return 0
  }

  status(): { readonly queued: number } {
    return { queued: this.queued }
  }

  take(): string[] {
    return this.told.splice(0)
  }
}
