import type { Client } from './client.ts'
import { MARKER } from './marker.ts'
import { fold, type Seen, type Stage, seenOf, sorted } from './record.ts'

/** The number of round trips to wait for retained messages, because aedes mixes them with live messages. */
const RETAINED_ROUNDS = 5

/** Topics of probes and presence messages. The bridge repeats them, so their times and numbers are not compared. */
const COUNTLESS: ReadonlySet<string> = new Set(['hub2mqtt/bridge/probe', 'hub2mqtt/bridge/presence'])

export interface RecorderOptions {
  /** The clients, keyed by their name in the recording. */
  readonly clients: Readonly<Record<string, Client>>
  readonly join: (filters: readonly string[]) => Promise<Client>
  readonly normalise: (payload: string) => string
}

export class Recorder {
  readonly #options: RecorderOptions
  readonly stages: Stage[] = []
  /** The number of messages in finished stages, by client. */
  readonly #done = new Map<Client, number>()
  readonly #recorded = new Set<string>()
  #retained = new Map<string, Seen>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Records a stage. On the topics in `lastOnly`, records only the last message. */
  async write(name: string, lastOnly: readonly string[]): Promise<void> {
    const clients = Object.entries(this.#options.clients)
    const live = Object.fromEntries(clients.map(([id, client]) => [id, this.#cut(id, client, lastOnly)]))
    const retained = await this.#takeDown()
    this.stages.push({ name, live, retained: changes(this.#retained, retained) })
    this.#retained = retained
  }

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
    if (this.#recorded.has(text)) return false
    this.#recorded.add(text)
    return true
  }

  async #takeDown(): Promise<Map<string, Seen>> {
    const { join, normalise } = this.#options
    await using latecomer = await join(['#'])
    const found = () => latecomer.seen.filter(({ retain }) => retain)
    for (let quiet = 0, round = 0, before = -1; quiet < RETAINED_ROUNDS; round += 1) {
      const marker = `round ${round}.`
      await latecomer.publish(MARKER, marker)
      await latecomer.untilMarker(marker)
      quiet = found().length === before ? quiet + 1 : 0
      before = found().length
    }
    return new Map(found().map((packet) => [packet.topic, seenOf(packet, normalise)]))
  }
}

function changes(before: ReadonlyMap<string, Seen>, after: ReadonlyMap<string, Seen>): Record<string, Seen | null> {
  const topics = [...new Set([...before.keys(), ...after.keys()])]
  const changed = topics.filter((topic) => JSON.stringify(before.get(topic)) !== JSON.stringify(after.get(topic)))
  return sorted(changed.map((topic) => [topic, after.get(topic) ?? null] as const))
}
