/**
 * Tells what others publish on the watched topics from the echoes of own publishes. MQTT 3.1.1 sends all of them, and
 * MQTT 5 those of brokers that do not heed `nl`.
 */
import { topicMatcher } from './names.ts'
import type { Retained } from './retained.ts'

export class EchoFilter {
  readonly #retained: Retained
  readonly #matches: (topic: string) => boolean
  /** Topics with something retained to the message last sent there that is not retained. */
  readonly #beside = new Map<string, string>()

  constructor(filters: readonly string[], retained: Retained) {
    this.#retained = retained
    this.#matches = topicMatcher(filters)
  }

  /** Call it before a message that is not retained. */
  sending(topic: string, payload: string): void {
    if (this.#retained.concerns(topic)) this.#beside.set(topic, payload)
  }

  /** Echoes do not outlive their connection. */
  disconnected(): void {
    this.#beside.clear()
  }

  /** Whether a message is somebody else's. If so, it is noted what the broker may hold now. */
  foreign(topic: string, text: string): boolean {
    if (this.#retained.mayBeOwn(topic, text) || this.#beside.get(topic) === text || !this.#matches(topic)) return false
    this.#retained.changedByOthers(topic, text)
    return true
  }
}
