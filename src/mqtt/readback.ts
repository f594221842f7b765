/**
 * Asks a broker what it still holds, and finds out on the way whether what we publish can be read at all.
 *
 * No broker says where its retained messages end. So a marker is sent through a topic of our own after each
 * subscription: what is retained comes before it, or (aedes) close behind it.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { IPublishPacket } from 'mqtt'
import { type Clock, sleep } from '../base/clock.ts'
import type { Connection } from './connection.ts'

export interface ReadBackOptions {
  readonly heldFilters: readonly string[]
  readonly probeTopic: string
  readonly clock: Clock
  /** For the marker to come back, in milliseconds. */
  readonly timeoutMs: number
  /** Subscribes, or drops the connection when the broker does not answer. */
  readonly subscribe: (filter: string, qos: 0 | 1) => Promise<boolean>
  readonly onFound: (topic: string, text: string) => void
  readonly watchedFilters: readonly string[]
  readonly furtherFilters: (topic: string, text: string) => readonly string[]
}

export interface ReadBackResult {
  readonly probe: 'ok' | 'denied'
  /** Filters of which everything retained was seen: what was not is not there. */
  readonly known: readonly string[]
}

/** No retained message for so long after the marker: there are none left. */
const quietMs = 20
/** Mosquitto queues 1,000 packets for a client, its acknowledgements among them, and drops the others without a word. */
const certain = 900
/** A broker may drop a SUBACK or a marker with what its queue has no room for; then another comes once it has caught up. */
export const repeatMs = 500

export class ReadBack {
  readonly #connection: Connection
  readonly #options: ReadBackOptions
  readonly #over = new AbortController()
  /** Grows while it is worked through: what is found may say that there is more. */
  readonly #filters: string[]
  /** Marker → what to call when it is back. */
  readonly #markers = new Map<string, () => void>()
  #found = 0
  #refused = false

  constructor(connection: Connection, options: ReadBackOptions) {
    this.#connection = connection
    this.#options = options
    this.#filters = [...options.heldFilters]
    void connection.down.then(() => this.#over.abort())
  }

  /** A message that is no command. */
  received({ topic, payload, retain }: IPublishPacket): void {
    if (topic === this.#options.probeTopic) {
      this.#markers.get(payload.toString())?.()
    } else if (retain && payload.length > 0) {
      // Live messages of these topics are echoes or forgeries: what counts is what is stored.
      this.#found += 1
      const text = payload.toString()
      for (const filter of this.#options.furtherFilters(topic, text)) {
        if (!this.#filters.includes(filter)) this.#filters.push(filter)
      }
      this.#options.onFound(topic, text)
    }
  }

  async run(): Promise<ReadBackResult> {
    const { clock, probeTopic, subscribe, timeoutMs, watchedFilters } = this.#options
    const deadline = clock.elapsed() + timeoutMs
    const result = await this.#read(subscribe, deadline)
    this.#connection.unsubscribe([probeTopic, ...this.#filters.filter((filter) => !watchedFilters.includes(filter))])
    return result
  }

  async #read(subscribe: ReadBackOptions['subscribe'], deadline: number): Promise<ReadBackResult> {
    const { probeTopic } = this.#options
    const known: string[] = []
    if (!(await subscribe(probeTopic, 1))) return { probe: 'denied', known }
    if ((await this.#mark(deadline)) === 'lost') return { probe: 'denied', known }
    const readOne = async (filter: string) => {
      // QoS 0: Mosquitto queues 1,000 messages of QoS 1 and drops the rest, but writes those of QoS 0 as fast as they are read.
      if (!(await subscribe(filter, 0))) return
      if ((await this.#mark(deadline)) === 'prompt') known.push(filter)
    }
    // All at a time: one after the other would take two round trips each.
    for (let done = 0; done < this.#filters.length; ) {
      const next = this.#filters.slice(done)
      done += next.length
      await Promise.all(next.map(readOne))
    }
    await this.#quiet(deadline)
    return { probe: 'ok', known: this.#found <= certain ? known : [] }
  }

  /** Sends a marker until one returns: `prompt` if it was the first. */
  async #mark(deadline: number): Promise<'prompt' | 'late' | 'lost'> {
    const { clock, probeTopic } = this.#options
    const marker = randomUUID()
    let back = false
    const { promise: returned, resolve } = Promise.withResolvers<void>()
    this.#markers.set(marker, () => {
      back = true
      resolve()
    })
    for (let tries = 1; ; tries += 1) {
      this.#connection.publish(probeTopic, marker, { qos: 1 }, (reason) => {
        if (reason === 0) return
        this.#refused = true
        resolve()
      })
      const left = deadline - clock.elapsed()
      await this.#within(Math.min(left, repeatMs), returned)
      if (back) return tries === 1 ? 'prompt' : 'late'
      if (this.#refused || left <= repeatMs || this.#over.signal.aborted) return 'lost'
    }
  }

  async #within(ms: number, event: Promise<void>): Promise<void> {
    const patience = new AbortController()
    const signal = AbortSignal.any([patience.signal, this.#over.signal])
    await Promise.race([event, sleep(this.#options.clock, ms, signal)])
    patience.abort()
  }

  async #quiet(deadline: number): Promise<void> {
    const { clock } = this.#options
    for (;;) {
      const before = this.#found
      await sleep(clock, quietMs, this.#over.signal)
      // A busy event loop runs the timer first and reads the sockets after.
      await setImmediate()
      await setImmediate()
      if (this.#found === before || this.#over.signal.aborted || clock.elapsed() >= deadline) return
    }
  }
}
