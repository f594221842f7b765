/** Tests that a fleet serves all of its hubs again after another program has written invalid values into its store. */
import { randomUUID } from 'node:crypto'
import { jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import fc from 'fast-check'
import { beforeAll, describe, expect, type TestContext, test, vi } from 'vitest'
import { LeasedFleet } from '../../src/cluster/leased.ts'
import { NatsStore } from '../../src/cluster/nats.ts'
import { MAX_EPOCH, memberKey, ROSTER_KEY } from '../../src/cluster/records.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { type Nats, natsPath, startNats } from '../support/nats.ts'
import { runs } from '../support/runs.ts'
import { silentLog as log } from '../support/silent-log.ts'
import { until } from '../support/until.ts'
import { Member, Simulation } from './simulation.ts'

const RESOURCES = Array.from({ length: 12 }, (_, i) => `hub-${i}`)
const EPOCHS = [0, 1, 3, 1_000, MAX_EPOCH - 1, MAX_EPOCH, MAX_EPOCH + 1, Number.MAX_SAFE_INTEGER, 1e308, -1, 1.5]
const SINCE = '2026-01-01T00:00:00.000Z'

/** Returns an invalid value for a key. Some values are the current content of the store with one change. */
type Junk = (held: { readonly row: string; readonly roster: string }) => string
const parsed = (text: string): object => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
const TEXTS: readonly Junk[] = ['', 'null', '{}', '[]', '7', '"', '{"gone":', '{"gone":"x"}', '[[[['].map(
  (text) => () => text,
)
const JUNK: readonly Junk[] = [
  ...TEXTS,
  () => '['.repeat(100_000),
  ...EPOCHS.flatMap((epoch): Junk[] => [
    () => JSON.stringify({ nonce: 'x', adopted: epoch }),
    ({ row }) => JSON.stringify({ ...parsed(row), adopted: epoch }),
    () => JSON.stringify({ epoch, settled: true, members: {} }),
    () =>
      JSON.stringify({ epoch, settled: true, members: { ghost: { nonce: 'x', since: SINCE, revision: 2 ** 53 - 1 } } }),
    ({ roster }) => JSON.stringify({ ...parsed(roster), epoch }),
  ]),
  ({ roster }) => JSON.stringify({ ...parsed(roster), settled: false }),
  ({ roster }) => JSON.stringify({ ...parsed(roster), members: { __proto__: 1 } }),
]
const NAMES = ['member-0', 'member-1', 'member-2', 'ghost']
const KEYS = [ROSTER_KEY, ...NAMES.map(memberKey)]

describe('a fleet whose store another program writes to', () => {
  const LEASE_MS = 15_000
  const step = fc.record({
    key: fc.constantFrom(...KEYS),
    junk: fc.constantFrom(...JUNK),
    after: fc.integer({ min: 0, max: 20_000 }),
    restart: fc.option(fc.nat({ max: 2 })),
  })

  test('serves each hub with one member again within eight leases, also after a restart of its members', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), fc.boolean(), async (steps, startAnew) => {
        const simulation = new Simulation(() => 0.5)
        const start = (i: number) => new Member(simulation, `member-${i}`, RESOURCES, LEASE_MS, 1)
        const members = [0, 1, 2].map(start)
        const again = (i: number) => {
          const before = members[i]
          if (before !== undefined) before.killed = true
          members[i] = start(i)
        }
        await simulation.run(3 * LEASE_MS)
        for (const { key, junk, after, restart } of steps) {
          const held = (name: string) => simulation.store.get(`${simulation.losses}.${name}`)?.value ?? ''
          simulation.junk(key, junk({ row: held(key), roster: held(ROSTER_KEY) }))
          await simulation.run(after)
          if (restart !== null) again(restart)
        }
        if (startAnew) for (const i of members.keys()) again(i)
        await simulation.run(8 * LEASE_MS)
        expect(simulation.servers(RESOURCES)).toEqual(RESOURCES.map(() => 1))
      }),
      { numRuns: runs(40) },
    )
  })
})

/** Each case has its own bucket and mostly waits, so all cases together take only as long as the slowest case. */
const CONCURRENT = { concurrent: true, timeout: 120_000 }
vi.setConfig({ maxConcurrency: 20 })

describe.skipIf(natsPath === undefined)('a fleet whose bucket another program writes to', CONCURRENT, () => {
  const LEASE_MS = 5_000
  const STEP_MS = 250
  const TIMEOUT_MS = 40_000
  let nats: Nats
  beforeAll(async () => {
    nats = await startNats()
    return () => nats[Symbol.asyncDispose]()
  })

  class Bridge {
    serves: ReadonlySet<string> = new Set()
    readonly #store: NatsStore
    readonly #fleet: LeasedFleet

    constructor(member: string, bucket: string, clock: JumpClock) {
      this.#store = new NatsStore({ servers: nats.urls, bucket, quietMs: LEASE_MS, name: member, clock, log })
      this.#fleet = new LeasedFleet({
        member,
        leaseMs: LEASE_MS,
        store: this.#store,
        resources: () => RESOURCES,
        onChange: () => {},
        isHealthy: () => true,
        clock,
        log,
      })
      this.#fleet.start((serves) => {
        this.serves = serves
        return Promise.resolve()
      })
    }

    get acts(): boolean {
      return this.#fleet.mayAct()
    }

    /** Stops the member without a message, like a killed process. */
    async kill(): Promise<void> {
      await this.#store[Symbol.asyncDispose]()
      this.serves = new Set()
    }
  }

  async function fleet({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    const bucket = `junk-${randomUUID()}`
    const connection = await connect({ servers: [...nats.urls] })
    onTestFinished(() => connection.close())
    const clock = new JumpClock()
    const start = () => NAMES.slice(0, 3).map((name) => new Bridge(name, bucket, clock))
    let bridges = start()
    onTestFinished(() => Promise.all(bridges.map((one) => one.kill())).then(() => undefined))
    const counts = () => RESOURCES.map((hub) => bridges.filter((one) => one.acts && one.serves.has(hub)).length)
    const manager = await jetstreamManager(connection)
    /** Moves the clock, but not faster than NATS answers, so that no lease ends early on a busy machine. */
    const pass = async (what: string, holds: () => boolean | Promise<boolean>) => {
      const step = async () => {
        clock.jump(STEP_MS)
        await manager.getAccountInfo()
        return holds()
      }
      await until(what, step, TIMEOUT_MS)
    }
    const served = () => pass('each hub at one bridge', () => counts().every((count) => count === 1))
    await served()
    const kv = await new Kvm(connection).open(bucket)
    const held = async (key: string) => (await kv.get(key))?.string() ?? ''
    return {
      kv,
      pass,
      served,
      held,
      nameOf: async (key: string) => `${await held('mark')}.${key}`,
      async startAnew() {
        await Promise.all(bridges.map((one) => one.kill()))
        bridges = start()
        await served()
      },
    }
  }

  test.for([
    ['text', 'x'],
    ['a text that no key can hold', 'a b..*'],
    ['nothing', ''],
    ['another mark', randomUUID()],
    ['a deletion', undefined],
  ])('with %s as its mark: serves all hubs, also after a restart of its members', async ([, mark], context) => {
    const { kv, pass, served, held, startAnew } = await fleet(context)
    const before = await held('mark')
    if (mark === undefined) await kv.delete('mark')
    else await kv.put('mark', mark)
    await pass('a mark', async () => /^[0-9a-f-]{36}$/.test(await held('mark')) && (await held('mark')) !== before)
    await served()
    await startAnew()
  })

  test('that writes the mark while no member runs: works after the start', async (context) => {
    const { kv, startAnew } = await fleet(context)
    await kv.put('mark', 'junk')
    await startAnew()
  })

  test.for(KEYS)('(key %s): serves all hubs after each value and a restart', async (key, context) => {
    const { kv, served, held, nameOf, startAnew } = await fleet(context)
    // The simulation above has all values, so a few are enough here.
    const sample = [...JUNK.filter((_, i) => i % 14 === KEYS.indexOf(key)), ...JUNK.slice(-1)]
    for (const junk of sample) {
      const roster = await held(await nameOf(ROSTER_KEY))
      const name = await nameOf(key)
      await kv.put(name, junk({ row: await held(name), roster }))
      await served()
    }
    await startAnew()
    await kv.delete(await nameOf(key))
    await served()
    await kv.purge(await nameOf(key))
    await startAnew()
  })
})
