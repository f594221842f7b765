/** The store of a fleet: a key-value bucket of NATS JetStream. */
import { type JetStreamApiError, jetstream } from '@nats-io/jetstream'
import { type KV, Kvm } from '@nats-io/kv'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import { ConflictError, type Row, type Store } from './store.ts'

export interface NatsOptions {
  readonly servers: readonly string[]
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly bucket: string
  /** As members renew their leases, nothing is that quiet for as long as a watch works. */
  readonly quietMs: number
  /** Of this connection, for those who look at the servers. */
  readonly name: string
  readonly clock: Clock
  readonly log: Logger
}

/** A call that takes longer is not waited for; a lease is at least five seconds long. */
const CALL_MS = 1_500
const PING_MS = 2_000
const AGAIN_MS = 1_000
const REPLICAS = 3

/** https://github.com/nats-io/nats-server/blob/main/server/errors.json */
const WRONG_LAST_SEQUENCE = 10_071
const NAME_IN_USE = 10_058
const NO_REPLICAS_WITHOUT_CLUSTER = 10_074

export class NatsStore implements Store, AsyncDisposable {
  readonly #options: NatsOptions
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #connection: NatsConnection | undefined
  #kv: KV | undefined
  #onRow: ((key: string, row: Row) => void) | undefined

  constructor(options: NatsOptions) {
    this.#options = options
  }

  create(key: string, value: string): Promise<number> {
    return decisive(() => this.#bucket().create(key, value))
  }

  update(key: string, value: string, revision: number): Promise<number> {
    return decisive(() => this.#bucket().update(key, value, revision, CALL_MS))
  }

  async get(key: string): Promise<Row | undefined> {
    const entry = await this.#bucket().get(key)
    return entry?.operation === 'PUT' ? { value: entry.string(), revision: entry.revision } : undefined
  }

  /** Connects, and goes on trying: until then all calls fail. */
  watch(onRow: (key: string, row: Row) => void): void {
    this.#onRow = onRow
    this.#running ??= this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#connection?.close()
    await this.#running
  }

  #bucket(): KV {
    if (this.#kv === undefined) throw new Error('there is no connection to NATS yet')
    return this.#kv
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stop
    for (let said = ''; !signal.aborted; await sleep(clock, AGAIN_MS, signal)) {
      try {
        this.#connection ??= await this.#connect()
        if (signal.aborted) return await this.#connection.close()
        this.#kv ??= await this.#open(this.#connection)
        said = ''
        await this.#follow(this.#kv)
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error)
        if (signal.aborted || detail === said) continue
        said = detail
        log.warn({ detail }, 'the bucket of the fleet cannot be used: trying on')
      }
    }
  }

  async #connect(): Promise<NatsConnection> {
    const { servers, username, password, name } = this.#options
    const connection = await connect({
      servers: [...servers],
      ...(username !== undefined && { user: username }),
      ...(password !== undefined && { pass: password }),
      name,
      timeout: CALL_MS,
      pingInterval: PING_MS,
      maxPingOut: 2,
      maxReconnectAttempts: -1,
      reconnectTimeWait: AGAIN_MS,
      // Those that are configured can be reached; what a cluster calls its servers perhaps cannot.
      ignoreClusterUpdates: true,
    })
    void this.#report(connection)
    return connection
  }

  async #report(connection: NatsConnection): Promise<void> {
    const { log } = this.#options
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') log.warn('connection to NATS lost')
      if (type === 'reconnect') log.info('connected to NATS again')
    }
  }

  /** The bucket on as many servers as there may be; a single server has it alone. */
  async #open(connection: NatsConnection): Promise<KV> {
    const { bucket } = this.#options
    const kvm = new Kvm(jetstream(connection, { timeout: CALL_MS }))
    for (const replicas of [REPLICAS, 1]) {
      try {
        return await kvm.create(bucket, { replicas, history: 1 })
      } catch (error) {
        const code = codeOf(error)
        if (code === NAME_IN_USE) return await kvm.open(bucket)
        if (code !== NO_REPLICAS_WITHOUT_CLUSTER) throw error
      }
    }
    throw new Error(`the bucket ${bucket} could not be made`)
  }

  /** Tells what the bucket holds and how it changes, for as long as that works: a watch may fall silent for good. */
  async #follow(kv: KV): Promise<void> {
    const { clock, quietMs } = this.#options
    const entries = await kv.watch()
    const stop = () => entries.stop()
    this.#stop.signal.addEventListener('abort', stop)
    let cancel = clock.after(quietMs, stop)
    try {
      for await (const { key, operation, revision, value } of entries) {
        cancel()
        cancel = clock.after(quietMs, stop)
        if (operation === 'PUT') this.#onRow?.(key, { value: Buffer.from(value).toString('utf8'), revision })
      }
    } finally {
      cancel()
      this.#stop.signal.removeEventListener('abort', stop)
    }
  }
}

async function decisive(write: () => Promise<number>): Promise<number> {
  try {
    return await write()
  } catch (error) {
    throw codeOf(error) === WRONG_LAST_SEQUENCE ? new ConflictError('another write came first') : error
  }
}

function codeOf(error: unknown): number | undefined {
  const code = error instanceof Error && 'code' in error ? (error as JetStreamApiError).code : undefined
  return typeof code === 'number' ? code : undefined
}
