/** Reads back again, in the middle of a connection: with a proof that all which the broker had for it has come. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import { ReadBack } from './readback.ts'
import { COMMAND, PROBE } from './session-setup.ts'
import type { LinkOptions } from './types.ts'

/** How long the proof may take. */
const PROOF_MS = 10_000

export class Reread {
  readonly #link: LinkOptions
  readonly #clock: Clock
  readonly #publish: (marker: string, onRefused: () => void) => void
  #current: ReadBack | undefined

  /** @param publish publishes on the probe topic, in turn with everything else that is sent */
  constructor(link: LinkOptions, clock: Clock, publish: (marker: string, onRefused: () => void) => void) {
    this.#link = link
    this.#clock = clock
    this.#publish = publish
  }

  /**
   * Lets the broker send what is retained under these filters. `proven`: what the broker had before the call has been
   * received. `replaced`: by a later call, or by another connection.
   */
  async run(connection: Connection, filters: readonly string[]): Promise<'proven' | 'failed' | 'replaced'> {
    const { probeTopic, subscriptions } = this.#link
    const readBack = new ReadBack(connection, {
      heldFilters: filters,
      lastingFilters: subscriptions,
      probeTopic,
      clock: this.#clock,
      timeoutMs: PROOF_MS,
      subscribe: (filter, qos) => {
        const options = filter === probeTopic ? PROBE : subscriptions.includes(filter) ? COMMAND : { qos }
        return connection.subscribe(filter, options)
      },
      publish: (marker, done) => this.#publish(marker, () => done(1)),
    })
    this.#current = readBack
    const { probe } = await readBack.run()
    if (this.#current !== readBack) return 'replaced'
    this.#current = undefined
    return probe === 'ok' ? 'proven' : 'failed'
  }

  stop(): void {
    this.#current = undefined
  }

  /** Whether a packet may be one of its markers. */
  takes(packet: IPublishPacket): boolean {
    if (packet.retain || packet.topic !== this.#link.probeTopic) return false
    this.#current?.received(packet)
    return true
  }
}
