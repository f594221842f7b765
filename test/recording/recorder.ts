/** Writes down what the clients see, stage by stage. */

import { until } from '../support/until.ts'
import type { Client, ClientOptions } from './client.ts'
import { MARKER } from './marker.ts'
import { pack } from './pack.ts'
import { fold, type Recording, type Seen, type Stage, seenOf, sorted } from './record.ts'

/** aedes sends retained messages beside live ones, so that they end only after some round trips that find none. */
const RETAINED_ROUNDS = 5
const PATIENCE_MS = 30_000

/**
 * Topics of which it does not count when and how often the same is said: the bridge repeats its probe until one comes
 * back, as many as it has subscriptions, and greets other bridges every minute.
 */
const COUNTLESS: ReadonlySet<string> = new Set(['hub2mqtt/bridge/probe', 'hub2mqtt/bridge/presence'])

export interface RecorderOptions {
  /** By the names under which the record shows them. */
  readonly clients: Readonly<Record<string, Client>>
  /** Connects one more client. */
  readonly join: (options: Pick<ClientOptions, 'id' | 'filters'>) => Promise<Client>
  /** A payload without what differs from run to run. */
  readonly normalise: (payload: string) => string
}

export class Recorder {
  readonly #options: RecorderOptions
  readonly #stages: Stage[] = []
  /** How many messages of each client belong to stages that are over. */
  readonly #done = new Map<Client, number>()
  /** Messages of the topics that are not counted. */
  readonly #told = new Set<string>()
  #retained = new Map<string, Seen>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Ends a stage. Of the topics in `lastOnly` only the last message counts. */
  async write(name: string, lastOnly: readonly string[]): Promise<void> {
    const clients = Object.entries(this.#options.clients)
    const live = Object.fromEntries(clients.map(([id, client]) => [id, this.#cut(id, client, lastOnly)]))
    const retained = await this.#takeDown()
    this.#stages.push({ name, live, retained: changes(this.#retained, retained) })
    this.#retained = retained
  }

  recording(broker: string): Recording {
    return pack(broker, this.#stages)
  }

  /** What a client has seen since the stage before, by topic. */
  #cut(id: string, client: Client, lastOnly: readonly string[]): Record<string, Seen[]> {
    const packets = client.seen.slice(this.#done.get(client))
    this.#done.set(client, client.seen.length)
    const topics = Map.groupBy(packets, ({ topic }) => topic)
    const messages = [...topics].map(([topic, all]) => {
      const seen = all.map((packet) => seenOf(packet, this.#options.normalise))
      const counted = COUNTLESS.has(topic) ? seen.filter((message) => this.#isNew(id, topic, message)) : seen
      return [topic, fold(lastOnly.includes(topic) ? counted.slice(-1) : counted)] as const
    })
    return sorted(messages.filter(([, seen]) => seen.length > 0))
  }

  #isNew(client: string, topic: string, message: Seen): boolean {
    const text = JSON.stringify([client, topic, message])
    if (this.#told.has(text)) return false
    this.#told.add(text)
    return true
  }

  /** What a client finds that comes now. */
  async #takeDown(): Promise<Map<string, Seen>> {
    const { join, normalise } = this.#options
    await using latecomer = await join({ id: 'latecomer', filters: ['#'] })
    const found = () => latecomer.seen.filter(({ retain }) => retain)
    for (let quiet = 0, round = 0, before = -1; quiet < RETAINED_ROUNDS; round += 1) {
      await latecomer.publish(MARKER, String(round))
      await until('the end of what is retained', () => latecomer.marker === String(round), PATIENCE_MS)
      quiet = found().length === before ? quiet + 1 : 0
      before = found().length
    }
    return new Map(found().map((packet) => [packet.topic, seenOf(packet, normalise)]))
  }
}

/** Topics that hold something else than before, or nothing any more. */
function changes(before: ReadonlyMap<string, Seen>, after: ReadonlyMap<string, Seen>): Record<string, Seen | null> {
  const topics = [...new Set([...before.keys(), ...after.keys()])]
  const changed = topics.filter((topic) => JSON.stringify(before.get(topic)) !== JSON.stringify(after.get(topic)))
  return sorted(changed.map((topic) => [topic, after.get(topic) ?? null] as const))
}
