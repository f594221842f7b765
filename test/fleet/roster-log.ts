/** What a fleet's store says of its epochs: read straight from NATS, whatever the members publish. */
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { nameIn } from '../../src/fleet/nats.ts'
import { ROSTER_KEY } from '../../src/fleet/records.ts'

/** As in the options: `fleet.bucket`. */
const BUCKET = 'hub2mqtt'

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

  /** The newest; 0 while there is none. */
  get epoch(): number {
    return Math.max(0, ...this.epochs.map(({ epoch }) => epoch))
  }

  /** Resolves when what the store holds is in the log. */
  async catchUp(): Promise<void> {
    const { key } = await this.#roster()
    // From the leader: a replica that catches up answers what was.
    const manager = await jetstreamManager(this.#connection)
    const message = await manager.streams.getMessage(`KV_${BUCKET}`, { last_by_subj: `$KV.${BUCKET}.${key}` })
    if (message !== null) this.#saw(message.string())
  }

  async #follow(): Promise<void> {
    const { kv, key } = await this.#roster()
    for await (const { operation, value } of await kv.watch({ key })) {
      if (operation === 'PUT') this.#saw(Buffer.from(value).toString())
    }
  }

  async #roster() {
    const kv = await new Kvm(jetstream(this.#connection)).open(BUCKET)
    const key = await nameIn(kv, ROSTER_KEY)
    if (key === undefined) throw new Error('no member has used the bucket yet')
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
