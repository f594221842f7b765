/**
 * The store of a fleet: a key-value bucket of NATS JetStream. A lost bucket may be created again, and its revisions
 * then start at 1 again. Each bucket therefore has a mark, and all its keys begin with the mark.
 */
import { randomUUID } from 'node:crypto'
import { JetStreamApiCodes, JetStreamApiError, jetstream } from '@nats-io/jetstream'
import { type KV, type KvEntry, Kvm } from '@nats-io/kv'
import { connect, errors, type NatsConnection, type ServerInfo } from '@nats-io/transport-node'
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import { compareVersions } from '../base/versions.ts'
import type { Credentials } from '../mqtt/types.ts'
import { ConflictError, type Row, type Store } from './rows.ts'

export interface NatsOptions {
  readonly servers: readonly string[]
  /** Called before each connection. `renew`: the server rejected the login, so read it again. Default: no login. */
  readonly login?: (renew: boolean) => Credentials
  readonly bucket: string
  /** Members renew their leases, so a working watch is never silent for this long. */
  readonly quietMs: number
  readonly name: string
  readonly clock: Clock
  readonly log: Logger
}

interface Bucket {
  readonly kv: KV
  readonly mark: string
}

/** Time limit for a call, which is shorter than a lease. A lease lasts at least five seconds. */
const CALL_MS = 1_500
const PING_MS = 2_000
const AGAIN_MS = 1_000
/** Minimum time between two reads of the login. */
const RENEW_MS = 10_000
/** With this many servers, a bucket survives the failure of one server. */
export const REPLICAS = 3
export const MARK_KEY = 'mark'

/** Returns connection options. One `tls://` address enables TLS for all servers, because all get the same password. */
export function accessTo(servers: readonly string[], login: () => Credentials) {
  return {
    servers: [...servers],
    authenticator: () => {
      const { username: user, password: pass } = login()
      return user === undefined ? undefined : { user, ...(pass !== undefined && { pass }) }
    },
    // The client ignores the scheme, so without this option, only the server decides whether to use TLS.
    ...(servers.some((url) => url.startsWith('tls://')) && { tls: {} }),
    // The configured addresses are reachable, but the server names that a cluster announces might not be.
    ignoreClusterUpdates: true,
  }
}

/** Reads go to the bucket's leader, because the other servers may lag behind. */
export const bucketOptions = (replicas: number) => ({ replicas, history: 1, allow_direct: false })

/** The servers' error codes for a conflict with another write to the key, which may still be in progress. */
const CONFLICTS: ReadonlySet<number | undefined> = new Set([
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
])
/** Error codes of https://github.com/nats-io/nats-server/blob/main/server/errors.json */
const NAME_IN_USE = 10_058
const NO_REPLICAS_WITHOUT_CLUSTER = 10_074

export class NatsStore implements Store, AsyncDisposable {
  readonly #options: NatsOptions
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #connection: NatsConnection | undefined
  #bucket: Bucket | undefined
  #isRefused = false
  /** Why the servers have refused writes on this connection. */
  readonly #refusals = new Set<string>()
  #renewedAt = Number.NEGATIVE_INFINITY
  #onRow: (key: string, row: Row) => void = () => {}
  #onLost: () => void = () => {}

  constructor(options: NatsOptions) {
    this.#options = options
  }

  create(key: string, value: string): Promise<number> {
    return this.#checkedWrite(() => this.#in(key, (kv, name) => kv.create(name, value)))
  }

  update(key: string, value: string, revision: number): Promise<number> {
    return this.#checkedWrite(() => this.#in(key, (kv, name) => kv.update(name, value, revision, CALL_MS)))
  }

  async get(key: string): Promise<Row | undefined> {
    const entry = await this.#in(key, (kv, name) => kv.get(name))
    return entry === null ? undefined : { value: textOf(entry), revision: entry.revision }
  }

  async startOver(): Promise<void> {
    if (this.#bucket !== undefined) await markOf(this.#bucket.kv, this.#bucket.mark)
  }

  /** Connects, and retries until connected. Until then, all calls fail. */
  watch(onRow: (key: string, row: Row) => void, onLost: () => void): void {
    this.#onRow = onRow
    this.#onLost = onLost
    this.#running ??= this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#connection?.close()
    await this.#running
  }

  #in<T>(key: string, call: (kv: KV, name: string) => Promise<T>): Promise<T> {
    if (this.#bucket === undefined) throw new Error('not connected to NATS yet')
    const { kv, mark } = this.#bucket
    return call(kv, nameOf(mark, key))
  }

  async #checkedWrite(write: () => Promise<number>): Promise<number> {
    try {
      return await write()
    } catch (error) {
      if (CONFLICTS.has(codeOf(error))) throw new ConflictError('another write has changed the key')
      if (error instanceof JetStreamApiError && !this.#refusals.has(error.message)) {
        this.#refusals.add(error.message)
        this.#options.log.warn({ detail: error.message }, 'NATS refuses to write to the bucket of the fleet')
      }
      throw error
    }
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stop
    for (let logged = ''; !signal.aborted; await sleep(clock, AGAIN_MS, signal)) {
      try {
        this.#connection ??= await this.#connect()
        if (signal.aborted) return await this.#connection.close()
        const kv = await this.#open(this.#connection)
        const bucket = { kv, mark: await markOf(kv) }
        const former = this.#bucket
        this.#bucket = bucket
        if (former !== undefined && former.mark !== bucket.mark) this.#onLost()
        logged = ''
        await this.#follow(bucket)
      } catch (error) {
        this.#failed(error)
        const detail = error instanceof Error ? error.message : String(error)
        if (signal.aborted || detail === logged) continue
        logged = detail
        log.warn({ detail }, 'the bucket of the fleet cannot be used: trying again')
      }
    }
  }

  async #connect(): Promise<NatsConnection> {
    const { servers, name, log } = this.#options
    const connection = await connect({
      ...accessTo(servers, () => this.#login()),
      name,
      timeout: CALL_MS,
      pingInterval: PING_MS,
      maxPingOut: 2,
      maxReconnectAttempts: -1,
      // By default, a second rejected login ends the connection permanently, but the password may be corrected later.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: AGAIN_MS,
    })
    this.#isRefused = false
    void this.#report(connection)
    if (mayConfirmTwice(connection.info))
      log.warn({ version: connection.info?.version }, `${CONFIRMS_TWICE}: upgrade it`)
    return connection
  }

  async #report(connection: NatsConnection): Promise<void> {
    const { log } = this.#options
    let isLost = false
    for await (const status of connection.status()) {
      // Each refused attempt, such as with a wrong password, emits another `disconnect`.
      if (status.type === 'disconnect') {
        if (!isLost) log.warn('connection to NATS lost')
        isLost = true
      }
      if (status.type === 'reconnect') {
        if (isLost) log.info('connected to NATS again')
        isLost = this.#isRefused = false
        this.#refusals.clear()
      }
      if (status.type === 'error') this.#failed(status.error)
    }
  }

  #failed(error: unknown): void {
    if (!(error instanceof errors.AuthorizationError) || this.#isRefused) return
    this.#isRefused = true
    this.#options.log.error('NATS refuses the user name or password: reading them again and retrying')
  }

  #login(): Credentials {
    const { login, clock } = this.#options
    const renew = this.#isRefused && clock.elapsed() - this.#renewedAt >= RENEW_MS
    if (renew) this.#renewedAt = clock.elapsed()
    return login?.(renew) ?? {}
  }

  /** Creates the bucket with replicas if the servers form a cluster. A single server does not support replicas. */
  async #open(connection: NatsConnection): Promise<KV> {
    const { bucket } = this.#options
    const kvm = new Kvm(jetstream(connection, { timeout: CALL_MS }))
    for (const replicas of [REPLICAS, 1]) {
      try {
        return await kvm.create(bucket, bucketOptions(replicas))
      } catch (error) {
        const code = codeOf(error)
        if (code === NAME_IN_USE) return await kvm.open(bucket)
        if (code !== NO_REPLICAS_WITHOUT_CLUSTER) throw error
      }
    }
    throw new Error(`the bucket ${bucket} could not be created`)
  }

  /** Passes on changes of the bucket. Returns if the watch is silent for too long, or a new bucket has replaced it. */
  async #follow({ kv, mark }: Bucket): Promise<void> {
    const { clock, quietMs } = this.#options
    const prefix = nameOf(mark, '')
    const entries = await kv.watch()
    const stop = () => entries.stop()
    this.#stop.signal.addEventListener('abort', stop)
    let cancel = clock.after(quietMs, stop)
    try {
      for await (const entry of entries) {
        const { key, revision } = entry
        const text = textOf(entry)
        // A new bucket has replaced this bucket.
        if (key === MARK_KEY && text !== mark) break
        if (!key.startsWith(prefix)) continue
        cancel()
        cancel = clock.after(quietMs, stop)
        this.#onRow(key.slice(prefix.length), { value: text, revision })
      }
    } finally {
      cancel()
      this.#stop.signal.removeEventListener('abort', stop)
      stop()
    }
  }
}

/** First version that confirms only one of several conflicting writes: github.com/nats-io/nats-server/issues/4320 */
const CONFIRMS_ONCE = '2.9.21'
export const CONFIRMS_TWICE =
  'a NATS cluster of this version may confirm two conflicting writes, so that two bridges may serve one hub for a while'

/** Returns whether leases on a server are unreliable. */
export function mayConfirmTwice(info: Pick<ServerInfo, 'cluster' | 'version'> | undefined): boolean {
  if (info?.cluster === undefined) return false
  return compareVersions(info.version, CONFIRMS_ONCE) < 0
}

const MARK = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const nameOf = (mark: string, key: string) => `${mark}.${key}`

/** Returns the key in a name with the current mark or an earlier mark; `undefined` for any other name. */
export function keyIn(name: string): string | undefined {
  const [mark = ''] = name.split('.', 1)
  return MARK.test(mark) ? name.slice(nameOf(mark, '').length) : undefined
}

/** Returns the text of an entry; empty for a deleted key, which can be overwritten. */
const textOf = (entry: KvEntry) => (entry.operation === 'PUT' ? Buffer.from(entry.value).toString('utf8') : '')

/** Returns the full name of a key; `undefined` if no member has used the bucket, `null` if its mark is invalid. */
export async function nameIn(kv: KV, key: string): Promise<string | null | undefined> {
  const entry = await kv.get(MARK_KEY)
  if (entry === null) return undefined
  const mark = textOf(entry)
  return MARK.test(mark) ? nameOf(mark, key) : null
}

/** Returns the mark. If it is missing, invalid or `former`, writes a new mark; fails if another write came first. */
async function markOf(kv: KV, former?: string): Promise<string> {
  const entry = await kv.get(MARK_KEY)
  const text = entry === null ? '' : textOf(entry)
  if (MARK.test(text) && text !== former) return text
  const mark = randomUUID()
  await (entry === null ? kv.create(MARK_KEY, mark) : kv.update(MARK_KEY, mark, entry.revision, CALL_MS))
  return mark
}

export function codeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined
}
