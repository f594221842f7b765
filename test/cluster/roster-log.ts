/** Reads the epochs directly from a fleet's store in NATS, independently of what the members publish. */
import { jetstream } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { nameIn } from '../../src/cluster/nats.ts'
import { ROSTER_KEY } from '../../src/cluster/records.ts'
import { until } from '../support/until.ts'

/** The default of `fleet.bucket`. */
const BUCKET = 'hub2mqtt'
/** A key whose name lacks the mark of the bucket, so that members ignore it. */
const SYNC_KEY = 'look'
const TRY_MS = 5_000
const TIMEOUT_MS = 60_000

export interface Epoch {
  readonly at: number
  readonly epoch: number
  readonly members: readonly string[]
}

export class RosterLog implements AsyncDisposable {
  readonly epochs: Epoch[] = []
  readonly #connection: Awaited<ReturnType<typeof connect>>

  private constructor(connection: Awaited<ReturnType<typeof connect>>) {
    this.#connection = connection
  }

  static async on(servers: readonly string[]): Promise<RosterLog> {
    const log = new RosterLog(await connect({ servers: [...servers], maxReconnectAttempts: -1 }))
    void log.#follow().catch(() => undefined)
    return log
  }

  get epoch(): number {
    return Math.max(0, ...this.epochs.map(({ epoch }) => epoch))
  }

  /**
   * Resolves when the log contains everything in the store. Writes a value, because a read is not enough: a server that
   * was suspended may act as the leader for a while and answer with old values. A write needs a majority of servers.
   */
  async catchUp(): Promise<void> {
    const { kv, key } = await retried(() => this.#roster())
    const written = await retried(() => kv.put(SYNC_KEY, ''))
    await retried(async () => {
      // NATS servers before 2.10 do not support several filters.
      const entries = await kv.watch()
      const giveUp = setTimeout(() => entries.stop(), TRY_MS)
      try {
        for await (const entry of entries) {
          if (entry.key === key && entry.operation === 'PUT') this.#saw(entry.string())
          if (entry.key === SYNC_KEY && entry.revision >= written) return true
        }
      } finally {
        clearTimeout(giveUp)
        entries.stop()
      }
      return false
    })
  }

  async #follow(): Promise<void> {
    const { kv, key } = await this.#roster()
    for await (const entry of await kv.watch({ key })) if (entry.operation === 'PUT') this.#saw(entry.string())
  }

  async #roster() {
    const kv = await new Kvm(jetstream(this.#connection)).open(BUCKET)
    const key = await nameIn(kv, ROSTER_KEY)
    if (typeof key !== 'string') throw new Error('no member has used the bucket yet')
    return { kv, key }
  }

  #saw(text: string): void {
    const { epoch, members } = Object(JSON.parse(text))
    if (epoch > this.epoch) this.epochs.push({ at: Date.now(), epoch, members: Object.keys(members) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close()
  }
}

/** Retries for a while, because NATS may have no leader. */
function retried<T>(attempt: () => Promise<T>): Promise<T> {
  return until('NATS', () => attempt().catch(() => undefined), TIMEOUT_MS, 500)
}
