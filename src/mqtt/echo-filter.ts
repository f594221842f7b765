/**
 * Tells what others publish from the echoes of own publishes. MQTT 3.1.1 sends all of them, and MQTT 5 those of brokers
 * that do not heed `nl`.
 */
import type { Clock } from '../base/clock.ts'
import { topicMatcher } from './names.ts'
import type { Retained } from './retained.ts'
import type { Protocol } from './types.ts'

/** How long an echo may take: a broker that discards the publish sends none. */
const ECHO_MS = 5_000

export interface EchoFilterOptions {
  readonly clock: Clock
  readonly retained: Retained
  readonly isCommand: (topic: string) => boolean
  /** Of the other topics on which publishes of others count. */
  readonly watchedFilters: readonly string[]
}

export class EchoFilter {
  readonly #options: EchoFilterOptions
  readonly #isWatched: (topic: string) => boolean
  /** Topics with something retained to the message last sent there that is not retained. */
  readonly #beside = new Map<string, string>()
  /** Topics of commands that were cleared to the end of the wait for the echo. */
  readonly #cleared = new Map<string, number>()
  #protocol: Protocol | undefined

  constructor(options: EchoFilterOptions) {
    this.#options = options
    this.#isWatched = topicMatcher(options.watchedFilters)
  }

  /** A connection begins. Echoes do not outlive theirs. */
  connected(protocol: Protocol): void {
    this.#protocol = protocol
    this.#beside.clear()
    this.#cleared.clear()
  }

  /** Call it before a message that is not retained. */
  sending(topic: string, payload: string): void {
    if (this.#options.retained.concerns(topic)) this.#beside.set(topic, payload)
  }

  /**
   * Call it before a zero-length publish. Under MQTT 3.1.1 it comes back on a command topic and looks like any empty
   * command: clearing a stored `restart` would restart. (Under MQTT 5 the subscription excludes own publishes.)
   */
  clearing(topic: string): void {
    const { clock, isCommand } = this.#options
    if (this.#protocol === '3.1.1' && isCommand(topic)) this.#cleared.set(topic, clock.elapsed() + ECHO_MS)
  }

  /** Whether a command without a payload is the echo of its clearing. Each comes once. */
  isOfClearing(topic: string, receivedAt: number): boolean {
    const until = this.#cleared.get(topic)
    this.#cleared.delete(topic)
    return until !== undefined && receivedAt <= until
  }

  /** Whether a message on another topic is somebody else's. If so, it is noted what the broker may hold now. */
  foreign(topic: string, text: string): boolean {
    const { retained } = this.#options
    if (retained.mayBeOwn(topic, text) || this.#beside.get(topic) === text || !this.#isWatched(topic)) return false
    retained.changedByOthers(topic, text)
    return true
  }
}
