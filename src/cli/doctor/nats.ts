import { randomBytes } from 'node:crypto'
import { JetStreamApiCodes, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { Kvm, type KvStatus } from '@nats-io/kv'
import { connect, errors, type NatsConnection } from '@nats-io/transport-node'
import { listed } from '../../base/text.ts'
import * as cluster from '../../cluster/nats.ts'
import { memberKey, memberOf, ROSTER_KEY, readMember, readRoster } from '../../cluster/records.ts'
import type { Config } from '../../config/options.ts'
import { camelKeys } from '../../config/table.ts'
import { about, counted, type Finding } from './finding.ts'

const { ok, note, problem } = about('NATS')

/** Time limit for each call and each connection. */
const TIMEOUT_MS = 5_000
/** A key that is never used, and a revision that this key never has. */
const NO_KEY = 'doctor'
const NO_REVISION = Number.MAX_SAFE_INTEGER
/** Maximum number of foreign names to show, and of names to read to find them. */
const MAX_NAMED = 3
const MAX_READ = 20

type Fleet = Config['fleet']

/** Examines the NATS server of a fleet. Leaves no changes behind: it deletes any bucket that it creates as a test. */
export async function* examineNats(fleet: Fleet): AsyncGenerator<Finding> {
  await using open = new AsyncDisposableStack()
  const connections: { readonly url: string; readonly connection: NatsConnection }[] = []
  for (const url of fleet.nats) {
    try {
      const connection = open.adopt(await connectTo(url, fleet), (one) => one.close())
      connections.push({ url, connection })
      yield ok(`connected to ${url}, version ${connection.info?.version ?? 'not reported'}`)
    } catch (error) {
      yield notConnected(url, error)
    }
  }
  const [first, ...others] = connections
  if (first === undefined) return
  if (connections.some(({ connection }) => cluster.mayConfirmTwice(connection.info))) {
    yield problem(cluster.CONFIRMS_TWICE, 'upgrade all servers of the cluster to NATS 2.10 or newer')
  }
  const clusterOf = ({ info }: NatsConnection) => info?.cluster ?? info?.server_id
  for (const { url, connection } of others) {
    if (clusterOf(connection) === clusterOf(first.connection)) continue
    const text = `${first.url} and ${url} do not belong to one cluster`
    yield problem(text, 'list only servers of one cluster: members that use different clusters serve the same hubs')
  }
  try {
    yield* examineJetStream(first.connection, fleet)
  } catch (error) {
    yield failed(error)
  }
}

function connectTo(url: string, fleet: Fleet): Promise<NatsConnection> {
  const { nats, username, password } = camelKeys(fleet)
  const access = cluster.accessTo(nats, () => ({ username, password }))
  return connect({ ...access, servers: [url], name: 'hub2mqtt doctor', timeout: TIMEOUT_MS, reconnect: false })
}

function notConnected(url: string, error: unknown): Finding {
  const to = `no connection to ${url}`
  if (error instanceof errors.AuthorizationError) {
    return problem(`${to}: the server refuses the user name or password`, 'check fleet.username and fleet.password')
  }
  if (error instanceof errors.ConnectionError && error.message.includes("support 'tls'")) {
    return problem(`${to}: the server offers no TLS`, 'enable TLS on the server, or use nats:// in all of fleet.nats')
  }
  const cause = error instanceof errors.TimeoutError ? 'no answer in time' : detailOf(error)
  const remedy = cause.toLowerCase().includes('certificate')
    ? 'check the names and dates of the certificate; for your own authority, set NODE_EXTRA_CA_CERTS to its file'
    : 'check the address, the port (usually 4222) and whether the server is running'
  return problem(`${to}: ${cause}`, remedy)
}

async function* examineJetStream(connection: NatsConnection, fleet: Fleet): AsyncGenerator<Finding> {
  const options = { timeout: TIMEOUT_MS }
  const jsm = await jetstreamManager(connection, options)
  const kvm = new Kvm(jetstream(connection, options))
  const bucket = await open(kvm, jsm, fleet.bucket)
  if (bucket === undefined)
    yield* tryBucket(kvm, fleet.bucket, connection.info?.cluster === undefined ? 1 : cluster.REPLICAS)
  else {
    yield* examineCopies(bucket.status, fleet)
    yield* examineContent(bucket)
  }
}

type Bucket = NonNullable<Awaited<ReturnType<typeof open>>>

async function open(kvm: Kvm, jsm: JetStreamManager, name: string) {
  try {
    const kv = await kvm.open(name)
    const status = await kv.status()
    return { kv, jsm, status, stream: status.streamInfo.config.name, subject: `$KV.${status.bucket}.` }
  } catch (error) {
    if (cluster.codeOf(error) === JetStreamApiCodes.StreamNotFound) return undefined
    throw error
  }
}

/** Creates and deletes a similar bucket, to find out whether the first member could create the real bucket. */
async function* tryBucket(kvm: Kvm, bucket: string, replicas: number): AsyncGenerator<Finding> {
  const name = `${bucket}-doctor-${randomBytes(4).toString('hex')}`
  try {
    await kvm.create(name, cluster.bucketOptions(replicas))
    yield ok(`the bucket ${bucket} does not exist yet; the first member can make it, on ${counted(replicas, 'server')}`)
    if (replicas === 1) yield alone()
  } catch (error) {
    yield problem(
      `the bucket ${bucket} does not exist and cannot be created: ${detailOf(error)}`,
      'three servers of a cluster must run and have room for the bucket, and the user must be allowed to create streams',
    )
  } finally {
    // Always delete the bucket, because it may have been created even if no answer arrived.
    await kvm
      .open(name)
      .then((made) => made.destroy())
      .catch(() => undefined)
  }
}

function* examineCopies({ bucket, replicas, ttl, streamInfo }: KvStatus, fleet: Fleet): Generator<Finding> {
  const missing = (streamInfo.cluster?.replicas ?? []).filter(({ offline, current }) => offline || !current)
  const where = `the bucket ${bucket} is on ${counted(replicas, 'server')}`
  if (missing.length > 0) {
    const text = `${where}, and ${missing.map(({ name }) => name).join(', ')} cannot keep up`
    yield problem(text, 'check that these servers are running and reach each other')
  } else yield ok(where)
  if (replicas < cluster.REPLICAS && fleet.nats.length >= cluster.REPLICAS) {
    const text = `of the ${fleet.nats.length} servers, only ${counted(replicas, 'server')} ${replicas === 1 ? 'holds' : 'hold'} the leases`
    yield problem(text, `add replicas: nats stream edit KV_${bucket} --replicas ${cluster.REPLICAS}`)
  } else if (replicas === 1) yield alone()
  else if (fleet.nats.length === 1) {
    const text = 'fleet.nats lists one of several servers: while that server is down, no bridge has a lease'
    yield note(text, 'list all servers')
  }
  if (ttl > 0) {
    yield problem(`the bucket ${bucket} deletes entries after ${ttl / 1000} s`, 'remove its maximum age')
  }
}

async function* examineContent(open: Bucket): AsyncGenerator<Finding> {
  const { kv, status, subject } = open
  const { bucket } = status
  const name = await cluster.nameIn(kv, ROSTER_KEY)
  const entry = typeof name === 'string' ? await kv.get(name) : null
  const roster = entry?.operation === 'PUT' ? readRoster(entry.string()) : undefined
  const foreign = name === null ? ['mark'] : entry?.operation === 'PUT' && roster === undefined ? [ROSTER_KEY] : []
  if (typeof name === 'string') foreign.push(...(await foreignRows(open, name.slice(0, -ROSTER_KEY.length))))
  for (const key of foreign) {
    const text = `the bucket ${bucket} holds a ${key} that is not from a fleet: another program writes to it`
    yield problem(text, 'give the fleet its own bucket: fleet.bucket')
  }
  if (foreign.includes('mark') || foreign.includes(ROSTER_KEY)) yield note('members overwrite it and start over')
  else if (roster === undefined) yield ok('it can be read; no member has used it yet')
  else yield ok(`it can be read: epoch ${roster.epoch}, ${counted(Object.keys(roster.members).length, 'member')}`)
  const strays = await strayNames(open)
  if (strays.length > 0) {
    const text = `the bucket ${bucket} holds other keys, such as ${strays.join(', ')}: members ignore them`
    yield note(text, 'delete them, or give the fleet its own bucket: fleet.bucket', strays)
  }
  try {
    // The server checks the permission first, and then rejects the wrong revision, so nothing is written.
    await kv.update(NO_KEY, '', NO_REVISION, TIMEOUT_MS)
  } catch (error) {
    if (cluster.codeOf(error) === JetStreamApiCodes.StreamWrongLastSequence) return yield ok('it can be written')
    const remedy = `let the user publish on ${subject}>, and check that more than half of the servers are running`
    yield problem(`it cannot be written: ${detailOf(error)}`, remedy)
  }
}

/** Returns names of keys without their prefix. Does not watch keys, which would leave a consumer on the server. */
async function namesBelow(prefix: string, filter: string, { jsm, stream, subject }: Bucket): Promise<string[]> {
  const { state } = await jsm.streams.info(stream, { subjects_filter: subject + prefix + filter })
  return Object.keys(state.subjects ?? {}).map((each) => each.slice(subject.length + prefix.length))
}

/** Lists the members' keys with values that no member writes, such as an epoch that is out of range. */
async function foreignRows(open: Bucket, prefix: string): Promise<string[]> {
  const found: string[] = []
  for (const key of await namesBelow(prefix, memberKey('*'), open)) {
    const row = memberOf(key) === undefined ? null : await open.kv.get(prefix + key)
    if (row?.operation === 'PUT' && readMember(row.string()) === undefined) found.push(key)
  }
  return found.sort()
}

/** Lists a few names that no member uses, escaped and truncated. Ignores deleted names. */
async function strayNames(open: Bucket): Promise<string[]> {
  const { jsm, stream, subject } = open
  const strays = (await namesBelow('', '>', open)).filter((name) => !isOwn(name))
  const found: string[] = []
  for (const name of strays.sort().slice(0, MAX_READ)) {
    // Query by subject, because the key-value client rejects some names.
    const message = await jsm.streams.getMessage(stream, { last_by_subj: subject + name })
    if (message === null || message.header.get('KV-Operation') !== '') continue
    if (found.push(listed([encodeURIComponent(name.toWellFormed())], 1)) === MAX_NAMED) break
  }
  return found
}

function isOwn(name: string): boolean {
  const key = cluster.keyIn(name)
  return name === cluster.MARK_KEY || key === ROSTER_KEY || (key !== undefined && memberOf(key) !== undefined)
}

function failed(error: unknown): Finding {
  const detail = detailOf(error)
  if (/jetstream (is )?not enabled/i.test(detail))
    return problem('JetStream is not enabled', 'enable JetStream on the server: jetstream { store_dir: /data }')
  if (/permissions violation/i.test(detail))
    return problem(`its rules forbid requests that members send: ${detail}`, 'let the user publish on $JS.API.>')
  const cause = error instanceof errors.TimeoutError ? 'no answer in time' : detail
  return problem(`JetStream does not work: ${cause}`, 'more than half of the servers of a cluster must be running')
}

const alone = () =>
  note('one server has all leases: while it is down, no bridge serves a hub', 'run three servers and list all of them')

function detailOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError) return error.errors.map(String).join('; ')
  return error.message !== '' ? error.message : detailOf(error.cause)
}
