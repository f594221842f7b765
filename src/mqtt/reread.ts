/** Reads back again, in the middle of a connection: with a proof that all which the broker had for it has come. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import { COMMAND, PROBE } from './greeting.ts'
import { ReadBack } from './readback.ts'
import type { LinkOptions } from './types.ts'

/** How long the proof may take. */
const PROOF_MS = 10_000

export interface RereadOptions {
  readonly link: LinkOptions
  readonly clock: Clock
  /** Publishes on the probe topic, in turn with everything else that is sent. */
  readonly publish: (marker: string, onRefused: () => void) => void
  readonly onFound: (topic: string, text: string) => void
}

export class Reread {
  readonly #options: RereadOptions
  #current: { readonly connection: Connection; readonly readBack: ReadBack } | undefined

  constructor(options: RereadOptions) {
    this.#options = options
  }

  /**
   * Reads what is retained under these filters. `proven`: what the broker had before the call has been received.
   * `replaced`: by a later call, or by another connection.
   */
  async run(connection: Connection, filters: readonly string[]): Promise<'proven' | 'failed' | 'replaced'> {
    const { link, clock, publish, onFound } = this.#options
    const { probeTopic, subscriptions } = link
    const readBack = new ReadBack(connection, {
      heldFilters: filters,
      lastingFilters: subscriptions,
      probeTopic,
      clock,
      timeoutMs: PROOF_MS,
      subscribe: (filter, qos) => {
        const options = filter === probeTopic ? PROBE : subscriptions.includes(filter) ? COMMAND : { qos }
        return connection.subscribe(filter, options)
      },
      publish: (marker, done) => publish(marker, () => done(1)),
      onFound,
      onLive: () => {},
      furtherFilters: () => [],
    })
    const current = { connection, readBack }
    this.#current = current
    const { probe } = await readBack.run()
    if (this.#current !== current) return 'replaced'
    this.#current = undefined
    return probe === 'ok' ? 'proven' : 'failed'
  }

  stop(): void {
    this.#current = undefined
  }

  /** Whether a packet, none of a command, was for this. */
  takes(packet: IPublishPacket): boolean {
    if (this.#current === undefined) return false
    const { connection, readBack } = this.#current
    // Under MQTT 5 also what others publish now is marked as retained.
    const isStored = packet.retain && connection.protocol === '3.1.1'
    if (packet.topic !== this.#options.link.probeTopic && !isStored) return false
    readBack.received(packet)
    return true
  }
}
