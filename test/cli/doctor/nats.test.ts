import { createServer } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { lineOf } from '../../../src/cli/doctor/doctor.ts'
import { examineNats } from '../../../src/cli/doctor/nats.ts'
import { LeasedFleet } from '../../../src/cluster/leased.ts'
import { CONFIRMS_TWICE, mayConfirmTwice, NatsStore } from '../../../src/cluster/nats.ts'
import { listening, temporaryFolder } from '../../support/at-end.ts'
import { Authority, openssl } from '../../support/certificates.ts'
import { type NatsOptions, natsPath, startNats } from '../../support/nats.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { configured } from './support.ts'

const OTHERS = { HUB_URL: 'http://127.0.0.1:1', MQTT_URL: 'mqtt://127.0.0.1:1' }

async function started(options: NatsOptions = {}) {
  const nats = await startNats(options)
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

async function found(urls: readonly string[], fleet: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { config } = configured({ ...OTHERS, FLEET_NATS: urls.join(','), FLEET_MEMBER: 'a', ...fleet })
  const lines: string[] = []
  for await (const finding of examineNats(config.fleet)) lines.push(lineOf(finding))
  return lines
}

/** Starts a member without hubs. */
async function member(urls: readonly string[], bucket: string): Promise<LeasedFleet> {
  const log = pino({ level: 'silent' })
  const store = new NatsStore({ servers: urls, bucket, quietMs: 5_000, name: 'test', clock: systemClock, log })
  onTestFinished(() => store[Symbol.asyncDispose]())
  const fleet = new LeasedFleet({
    member: 'a',
    leaseMs: 5_000,
    store,
    resources: () => [],
    onChange: () => {},
    isHealthy: () => true,
    clock: systemClock,
    log,
  })
  fleet.start(async () => {})
  await until('a lease', () => fleet.view.epoch > 0 && fleet.mayAct())
  return fleet
}

const OWN = { FLEET_BUCKET: 'own' }

/** Starts a server with a bucket that a member has used before it left the fleet. */
async function used() {
  const { urls } = await started()
  const fleet = await member(urls, 'own')
  const whileThere = await found(urls, OWN)
  await fleet.leave()
  const kv = await (await buckets(urls[0])).open('own')
  return { urls, kv, whileThere, epoch: fleet.view.epoch, mark: (await kv.get('mark'))?.string() ?? '' }
}

/** Ignores the finding about servers that are too old to confirm writes safely: the machine decides their version. */
const problemsIn = (lines: readonly string[]) =>
  lines.filter((line) => line.startsWith('problem') && !line.includes(CONFIRMS_TWICE))

async function buckets(url = '') {
  const connection = await connect({ servers: [url] })
  onTestFinished(() => connection.close())
  return new Kvm(connection)
}

async function names(kvm: Kvm): Promise<string[]> {
  const all: string[] = []
  for await (const { bucket } of kvm.list()) all.push(bucket)
  return all
}

test.each([
  { version: '2.9.10', cluster: 'one', expected: true },
  { version: '2.9.20-RC.1', cluster: 'one', expected: true },
  { version: '2.9.21', cluster: 'one', expected: false },
  { version: '2.15.2', cluster: 'one', expected: false },
  { version: '2.9.10', cluster: undefined, expected: false },
])('$version in the cluster $cluster may confirm two writes: $expected', ({ version, cluster, expected }) => {
  expect(mayConfirmTwice({ version, ...(cluster && { cluster }) })).toBe(expected)
})

describe.skipIf(natsPath === undefined)('doctor at NATS', () => {
  test('finds no problem with a server that no member has used, and leaves nothing there', async () => {
    const { urls } = await started()
    expect(await found(urls)).toEqual([
      expect.stringMatching(/^ok {7}NATS: connected to nats:.*, version \d/),
      'ok       NATS: the bucket hub2mqtt does not exist yet; the first member can make it, on one server',
      expect.stringMatching(/^note .*one server has all leases/),
    ])
    expect(await names(await buckets(urls[0]))).toEqual([])
  })

  test('reads the entries of members, and changes none', async () => {
    const { urls, kv, mark, epoch, whileThere } = await used()
    expect(whileThere).toContainEqual(expect.stringMatching(/it can be read: epoch \d+, one member$/))
    const before = (await kv.status()).streamInfo.state
    expect(await found(urls, OWN)).toEqual([
      expect.stringContaining('connected to'),
      'ok       NATS: the bucket own is on one server',
      expect.stringContaining('one server has all leases'),
      `ok       NATS: it can be read: epoch ${epoch}, 0 members`,
      'ok       NATS: it can be written',
    ])
    expect((await kv.status()).streamInfo.state).toEqual(before)
    await kv.put(`${mark}.roster`, '{"something":"else"}')
    expect(problemsIn(await found(urls, OWN))).toEqual([expect.stringContaining('give the fleet its own bucket')])
  })

  test('detects a mark, a roster and rows that no member has written', async () => {
    const { urls, kv, mark } = await used()
    const roster = (await kv.get(`${mark}.roster`))?.string() ?? ''
    for (const [name, value, own] of [
      // The epochs of this roster and of the second `member.b` are out of range.
      ['roster', '{"epoch":9e15,"settled":true,"members":{}}', roster],
      ['member.b', 'x', undefined],
      ['member.b', `{"nonce":"x","adopted":${Number.MAX_SAFE_INTEGER}}`, undefined],
      ['mark', 'x', mark],
    ] as const) {
      const key = name === 'mark' ? name : `${mark}.${name}`
      await kv.put(key, value)
      expect(problemsIn(await found(urls, OWN))).toEqual([
        expect.stringContaining(
          `the bucket own holds a ${name} that is not from a fleet: another program writes to it`,
        ),
      ])
      if (own === undefined) await kv.delete(key)
      else await kv.put(key, own)
    }
    expect(problemsIn(await found(urls, OWN))).toEqual([])
  })

  test('names some of the keys that no member uses, and none that is deleted or has an earlier mark', async () => {
    const { urls, kv, mark } = await used()
    const noted = async () => (await found(urls, OWN)).filter((line) => line.includes('other keys'))
    const former = '01234567-89ab-cdef-0123-456789abcdef'
    for (const key of [`${former}.roster`, `${former}.member.b`, 'deleted', 'purged']) await kv.put(key, 'x')
    await kv.delete('deleted')
    await kv.purge('purged')
    expect(await noted()).toEqual([])
    for (const key of ['junk', 'member.zz', `${mark}.junk`, 'zz']) await kv.put(key, 'x')
    expect(await noted()).toEqual([
      `note     NATS: the bucket own holds other keys, such as ${mark}.junk, junk, member.zz: members ignore them\n` +
        '         → delete them, or give the fleet its own bucket: fleet.bucket',
    ])
    for (const key of [`${mark}.junk`, 'junk', 'member.zz']) await kv.delete(key)
    const connection = await connect({ servers: [...urls] })
    onTestFinished(() => connection.close())
    for (const odd of ['\u001b[31m\u202e', 'x'.repeat(900)]) connection.publish(`$KV.own.${odd}`, 'x')
    await connection.flush()
    const long = `${'x'.repeat(60)}…`
    await until(
      'the odd keys',
      async () => (await noted())[0]?.includes(`such as %1B%5B31m%E2%80%AE, ${long}, zz:`) ?? false,
    )
  })

  test('detects a bucket that drops entries', async () => {
    const { urls } = await started()
    await (await buckets(urls[0])).create('hub2mqtt', { ttl: 60_000 })
    expect(problemsIn(await found(urls))).toEqual([expect.stringContaining('deletes entries after 60 s')])
  })

  test('detects too few replicas, and lost servers of a cluster', async () => {
    const nats = await started({ nodes: 3 })
    const lines = await found(nats.urls)
    expect(lines).toContainEqual(expect.stringContaining('the first member can make it, on 3 servers'))
    const version = /version (\S+)/.exec(lines[0] ?? '')?.[1] ?? ''
    const isOld = mayConfirmTwice({ cluster: 'test', version })
    expect(lines.filter((line) => line.includes(CONFIRMS_TWICE))).toHaveLength(isOld ? 1 : 0)
    const kvm = await buckets(nats.urls[0])
    await kvm.create('single', { replicas: 1 })
    const single = async () => problemsIn(await found(nats.urls, { FLEET_BUCKET: 'single' }))
    // Wait, because a new stream has no leader for a moment.
    await until('a leader', async () => !(await single()).some((line) => line.includes('cannot be written')), 30_000)
    expect(await single()).toEqual([
      expect.stringMatching(/only one server holds the leases.*nats stream edit KV_single --replicas 3/s),
    ])
    await kvm.create('hub2mqtt', { replicas: 3 })
    // Wait, because a new replica is out of date for a moment.
    await until('the copies', async () => problemsIn(await found(nats.urls)).length === 0, 30_000)
    expect(await found(nats.urls.slice(0, 1))).toContainEqual(expect.stringContaining('lists one of several servers'))
    await nats.node(2).kill()
    const lost = async () => {
      const problems = problemsIn(await found(nats.urls))
      return problems.some((line) => line.includes('n3 cannot keep up')) && problems
    }
    expect(await until('the loss of a copy', lost, 60_000)).toContainEqual(
      expect.stringContaining(`no connection to ${nats.urls[2]}`),
    )
  }, 120_000)

  test('detects independent servers', async () => {
    const [one, other] = [await started(), await started()]
    expect(problemsIn(await found([...one.urls, ...other.urls]))).toEqual([
      expect.stringContaining(`${one.urls[0]} and ${other.urls[0]} do not belong to one cluster`),
    ])
  })

  test('reports that no server answers, and that credentials are refused', async () => {
    const nowhere = `nats://127.0.0.1:${await freePort()}`
    expect(await found([nowhere])).toEqual([expect.stringMatching(/no connection to .*: connection refused\n.*4222/)])
    const { urls } = await started({ config: ['authorization { user: fleet, password: right }'] })
    const login = { FLEET_USERNAME: 'fleet', FLEET_PASSWORD: 'wrong' }
    expect(await found(urls, login)).toEqual([
      expect.stringMatching(/refuses the user name or password\n.*fleet\.user/),
    ])
    expect(problemsIn(await found(urls, { ...login, FLEET_PASSWORD: 'right' }))).toEqual([])
  })

  test('sends its password to no server without TLS if one address is tls://', async () => {
    const heard: string[] = []
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => heard.push(data.toString()))
      socket.write('INFO {"server_id":"X","version":"2.10.0","proto":1,"max_payload":1048576,"headers":true}\r\n')
    })
    const port = await listening(server)
    const servers = [`nats://127.0.0.1:${port}`, `tls://127.0.0.1:${port}`]
    const login = { FLEET_USERNAME: 'fleet', FLEET_PASSWORD: 'right' }
    expect(await found(servers, login)).toEqual(
      servers.map((url) => expect.stringMatching(`no connection to ${url}: the server offers no TLS\n.*enable TLS`)),
    )
    const warnings: string[] = []
    const log = pino({ level: 'warn' }, { write: (line) => void warnings.push(line) })
    const access = { servers, login: () => ({ username: 'fleet', password: 'right' }), bucket: 'own' }
    await using store = new NatsStore({ ...access, quietMs: 5_000, name: 'test', clock: systemClock, log })
    store.watch(
      () => {},
      () => {},
    )
    await until('a warning', () => warnings.length > 0)
    expect(warnings[0]).toContain("server does not support 'tls'")
    expect(heard).toEqual([])
  })

  test.skipIf(!openssl)('uses TLS with a server that offers it', async () => {
    const authority = new Authority(temporaryFolder())
    authority.issue('nats')
    const files = `cert_file: "${authority.file('nats.pem')}", key_file: "${authority.file('nats.key')}"`
    const { urls } = await started({ config: [`tls { ${files} }`] })
    const encrypted = urls.map((url) => url.replace('nats:', 'tls:'))
    expect(await found(encrypted)).toEqual([
      expect.stringMatching(/no connection to tls:.*certificate.*\n.*NODE_EXTRA_CA_CERTS/),
    ])
    const known = getCACertificates('default')
    setDefaultCACertificates([...known, authority.pem('ca.pem')])
    onTestFinished(() => setDefaultCACertificates(known))
    expect(problemsIn(await found(encrypted))).toEqual([])
  })

  test('reports that JetStream is not available to this user', async () => {
    const { urls } = await started({ config: ['accounts { PLAIN { users: [{ user: fleet, password: right }] } }'] })
    const lines = await found(urls, { FLEET_USERNAME: 'fleet', FLEET_PASSWORD: 'right' })
    expect(lines).toEqual([
      expect.stringContaining('connected to'),
      expect.stringContaining('JetStream is not enabled'),
    ])
  })

  test.each([
    ['a bucket that the user may only read', 'deny: ["$KV.>"]', /it cannot be written: .*\n.*\$KV\.hub2mqtt\.>/],
    ['JetStream that the user may not use', 'deny: ["$JS.API.>"]', /its rules forbid .*\n.*\$JS\.API\.>/],
  ])('names the missing permission for %s', async (_, rule, words) => {
    const users = `users: [{ user: all, password: all }, { user: fleet, password: right, permissions: { publish: { ${rule} } } }]`
    const { urls } = await started({ config: [`authorization { ${users} }`] })
    const connection = await connect({ servers: [...urls], user: 'all', pass: 'all' })
    onTestFinished(() => connection.close())
    await new Kvm(connection).create('hub2mqtt')
    const lines = await found(urls, { FLEET_USERNAME: 'fleet', FLEET_PASSWORD: 'right' })
    expect(problemsIn(lines)).toEqual([expect.stringMatching(words)])
  })
})
