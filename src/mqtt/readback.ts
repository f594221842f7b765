/**
 * Reads back the broker's retained messages, and checks whether the broker delivers this link's publishes.
 *
 * No broker reports that it has sent all retained messages. Therefore, a marker is published to the probe topic after
 * each subscription. Retained messages arrive before the marker or, with aedes, shortly after it.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { IPublishPacket } from 'mqtt'
import { type Clock, sleep, within } from '../base/clock.ts'
import { Limiter } from '../base/limiter.ts'
import type { Connection } from './connection.ts'
import { matches } from './names.ts'

export interface ReadBackOptions {
  readonly retainedFilters: readonly string[]
  readonly probeTopic: string
  readonly clock: Clock
  /** How long the broker may take to deliver a marker after the latest retained message. */
  readonly timeoutMs: number
  readonly subscribe: (filter: string, qos: 0 | 1) => Promise<boolean>
  /** Publishes a marker with QoS 1; default: within the broker's receive maximum. `done` receives the reason code. */
  readonly publish?: ((marker: string, done: (reason: number) => void) => void) | undefined
  readonly onFound?: (topic: string, text: string) => void
  /**
   * Receives messages that are not retained. These are from other clients, because this client has not published yet.
   */
  readonly onLive?: (topic: string, text: string) => void
  /** The `retainedFilters` that stay subscribed. */
  readonly lastingFilters?: readonly string[]
  readonly additionalFilters?: (topic: string, text: string) => readonly string[]
}

export interface ReadBackResult {
  readonly probe: 'ok' | 'denied'
  /** Filters that were read back completely, so that all retained messages under them were found. */
  readonly complete: readonly string[]
}

/** The read-back ends when no retained message has arrived for this long after the markers. */
const QUIET_MS = 20
/**
 * With more messages than this, a read-back may be incomplete: Mosquitto queues 1,000 packets per client, including
 * acknowledgements.
 */
export const CERTAIN = 900

export class ReadBack {
  readonly #connection: Connection
  readonly #options: ReadBackOptions
  /** Grows during the read-back, because a message may name additional filters. */
  readonly #filters: string[]
  readonly #counts = new Map<string, { readonly levels: readonly string[]; found: number }>()
  readonly #markers = new Map<string, () => void>()
  #found = 0
  /** When the latest retained message arrived, in `clock.elapsed()` milliseconds. */
  foundAt = Number.NEGATIVE_INFINITY
  #deadline = 0
  /** Limits the unacknowledged publishes to the number that the broker accepts. */
  readonly #publishes: Limiter

  constructor(connection: Connection, options: ReadBackOptions) {
    this.#connection = connection
    this.#options = options
    this.#filters = [...options.retainedFilters]
    this.#publishes = new Limiter({ clock: options.clock, slots: connection.receiveMaximum })
  }

  hasFound(filter: string): boolean {
    return this.#countOf(filter) > 0
  }

  received({ topic, payload, retain }: IPublishPacket): void {
    const { clock, probeTopic, onFound, onLive, additionalFilters } = this.#options
    if (!retain) {
      if (topic === probeTopic) this.#markers.get(payload.toString())?.()
      else onLive?.(topic, payload.toString())
    } else if (payload.length > 0) {
      this.#found += 1
      this.foundAt = clock.elapsed()
      this.#grantTime()
      this.#count(topic)
      const text = payload.toString()
      for (const filter of additionalFilters?.(topic, text) ?? []) {
        if (!this.#filters.includes(filter)) this.#filters.push(filter)
      }
      onFound?.(topic, text)
    }
  }

  async run(): Promise<ReadBackResult> {
    const { lastingFilters = [] } = this.#options
    this.#grantTime()
    const result = await this.#read()
    const done = this.#filters.filter((filter) => !lastingFilters.includes(filter))
    // Send one packet per filter, because a broker may limit the size of packets.
    for (const filter of done) void this.#connection.unsubscribe([filter])
    return result
  }

  #countOf(filter: string): number {
    return this.#counts.get(filter)?.found ?? 0
  }

  #count(topic: string): void {
    const levels = topic.split('/')
    let isCounted = false
    for (const one of this.#counts.values()) {
      // If filters overlap, count a message for the first matching filter, and for others that have no message yet.
      if ((isCounted && one.found > 0) || !matches(one.levels, levels)) continue
      one.found += 1
      isCounted = true
    }
  }

  #grantTime(): void {
    const { clock, timeoutMs } = this.#options
    this.#deadline = clock.elapsed() + timeoutMs
  }

  async #read(): Promise<ReadBackResult> {
    const { subscribe, probeTopic } = this.#options
    if (!(await subscribe(probeTopic, 1)) || (await this.#mark()) === 'lost') return { probe: 'denied', complete: [] }
    const complete = await this.#readAll(this.#filters)
    if (this.#found <= CERTAIN) return { probe: 'ok', complete }
    // Read filters with few messages again, in groups so small that the broker drops nothing.
    const certain: string[] = []
    for (const group of this.#groupsOf(complete)) {
      const before = this.#found
      const again = await this.#readAll(group)
      if (this.#found - before <= CERTAIN) certain.push(...again)
    }
    return { probe: 'ok', complete: certain }
  }

  /** Also reads filters that are added during the read. Returns the filters whose first marker was delivered. */
  async #readAll(filters: readonly string[]): Promise<string[]> {
    const complete: string[] = []
    const readOne = async (filter: string) => {
      if (!this.#counts.has(filter)) this.#counts.set(filter, { levels: filter.split('/'), found: 0 })
      // Mosquitto queues at most 1,000 messages with QoS 1 and drops all others, but sends messages with QoS 0 as fast
      // as the client reads.
      if (!(await this.#options.subscribe(filter, 0))) return
      if ((await this.#mark()) === 'prompt') complete.push(filter)
    }
    // Read as many filters in parallel as the broker accepts markers, because each filter takes two round trips.
    for (let done = 0; done < filters.length; ) {
      const next = filters.slice(done, done + this.#connection.receiveMaximum)
      done += next.length
      await Promise.all(next.map(readOne))
    }
    if (filters.length > 0) await this.#quiet()
    return complete
  }

  #groupsOf(filters: readonly string[]): string[][] {
    const groups: string[][] = []
    let room = 0
    for (const filter of filters) {
      const found = this.#countOf(filter)
      if (found > CERTAIN) continue
      if (groups.length === 0 || found > room) {
        groups.push([])
        room = CERTAIN
      }
      room -= found
      groups.at(-1)?.push(filter)
    }
    return groups
  }

  /** Publishes a marker repeatedly until the broker delivers it. Resolves to `prompt` if one publish was enough. */
  async #mark(): Promise<'prompt' | 'late' | 'lost'> {
    const marker = randomUUID()
    /** Resolves to `true` if the broker delivered the marker, `false` if the broker refused the publish. */
    const { promise: answered, resolve } = Promise.withResolvers<boolean>()
    const publish = this.#options.publish ?? this.#publishInTurn.bind(this)
    const acked = (reason: number) => {
      if (reason !== 0) resolve(false)
    }
    this.#markers.set(marker, () => resolve(true))
    const attempts = await retryUntilAnswered({
      clock: this.#options.clock,
      request: () => publish(marker, acked),
      answered,
      repeats: true,
      deadline: () => this.#deadline,
      foundAt: () => this.foundAt,
      signal: this.#connection.ended,
    })
    if (attempts === undefined || !(await answered)) return 'lost'
    return attempts === 1 ? 'prompt' : 'late'
  }

  #publishInTurn(marker: string, done: (reason: number) => void): void {
    void this.#publishes.run({}, async () => {
      const { promise: acked, resolve } = Promise.withResolvers<number>()
      this.#connection.publish(this.#options.probeTopic, marker, { qos: 1 }, resolve)
      done(await acked)
    })
  }

  async #quiet(): Promise<void> {
    const { clock } = this.#options
    const { ended } = this.#connection
    for (;;) {
      const before = this.#found
      await sleep(clock, QUIET_MS, ended)
      // Let Node.js read the sockets, because in a busy event loop, the timer may fire first.
      await setImmediate()
      await setImmediate()
      if (this.#found === before || ended.aborted || clock.elapsed() >= this.#deadline) return
    }
  }
}

/** A request is repeated after this time, because a broker with a full queue may drop the response. */
const REPEAT_MS = 500

interface RetryUntilAnswered {
  readonly clock: Clock
  readonly request: () => void
  /** Settles when an answer arrives, or can no longer arrive. */
  readonly answered: Promise<unknown>
  readonly repeats: boolean
  /** Returns the time at which to give up, in `clock.elapsed()` milliseconds. It may increase between calls. */
  readonly deadline: () => number
  /**
   * When the latest retained message arrived. Retained messages precede the answer, so while they keep arriving, the
   * answer is not overdue, and another SUBSCRIBE would make the broker send all of them again.
   */
  readonly foundAt: () => number
  /** Returns whether other messages prove that the broker answered. Checked before each repetition. */
  readonly isEvident?: () => boolean
  readonly signal: AbortSignal
}

/** Repeats a request until the broker answers. Resolves to the number of requests; `undefined` after giving up. */
export async function retryUntilAnswered(options: RetryUntilAnswered): Promise<number | undefined> {
  const { clock, answered, repeats, deadline, foundAt, isEvident, signal } = options
  let isAnswered = false
  void answered.then(() => {
    isAnswered = true
  })
  let attempts = 0
  let attemptedAt = Number.NEGATIVE_INFINITY
  const againAt = () => (repeats ? Math.max(attemptedAt, foundAt()) + REPEAT_MS : Number.POSITIVE_INFINITY)
  while (!signal.aborted && clock.elapsed() < deadline()) {
    const now = clock.elapsed()
    if (attempts === 0 || now >= againAt()) {
      if (attempts > 0 && isEvident?.()) return attempts
      attempts += 1
      attemptedAt = now
      options.request()
    }
    await within(clock, Math.min(deadline(), againAt()) - now, answered, signal)
    if (isAnswered) return attempts
    // Let Node.js read the sockets, because in a busy event loop, the timer may fire first.
    await setImmediate()
    await setImmediate()
    if (isAnswered) return attempts
  }
  return undefined
}
