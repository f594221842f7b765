import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ownerOf } from '../../src/cluster/fleet.ts'
import { memberKey } from '../../src/cluster/records.ts'
import { Random } from '../support/random.ts'
import { runs } from '../support/runs.ts'
import { Member, Simulation } from './simulation.ts'

const LEASE_MS = 15_000
const RESOURCES = Array.from({ length: 12 }, (_, i) => `hub-${i}`)
/** Rates of the members' clocks. They differ more than the clocks of real machines. */
const SPEEDS = [1, 0.93, 1.07, 0.97] as const

const step = fc.record({
  after: fc.integer({ min: 0, max: 20_000 }),
  who: fc.nat({ max: 3 }),
  what: fc.constantFrom('kill', 'pause', 'cut off', 'unfit', 'end', 'start', 'start', 'twin', 'lose the store'),
  ms: fc.integer({ min: 100, max: 40_000 }),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

async function live(seed: number, steps: readonly Step[]) {
  const simulation = new Simulation(new Random(seed).next)
  const start = (i: number) =>
    new Member(simulation, `member-${i}`, RESOURCES, LEASE_MS, SPEEDS[i % SPEEDS.length] ?? 1)
  const alive = new Map([0, 1, 2].map((i) => [i, start(i)]))
  for (const { after, who, what, ms } of steps) {
    await simulation.run(after)
    const member = alive.get(who)
    if (what === 'lose the store') simulation.lose()
    else if (member === undefined || member.killed) {
      if (what === 'start') alive.set(who, start(who))
    } else if (what === 'twin') start(who)
    else await happen(simulation, member, what, ms)
  }
  return { simulation, alive }
}

async function happen(simulation: Simulation, member: Member, what: Step['what'], ms: number): Promise<void> {
  if (what === 'kill') member.killed = true
  else if (what === 'pause') member.pausedUntil = simulation.now + ms
  else if (what === 'cut off') member.cutOffUntil = simulation.now + ms
  else if (what === 'unfit') member.unfitUntil = simulation.now + ms
  else if (what === 'end') {
    void member.fleet.leave()
    await simulation.run(3_000)
    member.killed = true
  }
}

/** Expects that one member acts on each resource. */
const expectServed = (simulation: Simulation) => expect(simulation.servers(RESOURCES)).toEqual(RESOURCES.map(() => 1))

/** Starts three members. Resolves when each member serves its share. */
async function settled() {
  const simulation = new Simulation(() => 0.5)
  const member = (i: number) => new Member(simulation, `member-${i}`, RESOURCES, LEASE_MS, 1)
  const first = member(0)
  const members = [first, member(1), member(2)]
  await simulation.run(3 * LEASE_MS)
  return { simulation, first, members }
}

describe('a fleet by leases', () => {
  test('never has two members that serve one hub, whatever happens to them and to the store', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 12 }), async (seed, steps) => {
        const { simulation } = await live(seed, steps)
        await simulation.run(60_000)
        expect(simulation.violations).toEqual([])
      }),
      { numRuns: runs(200) },
    )
  })

  test('serves every hub again after all faults are over', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 8 }), async (seed, steps) => {
        const { simulation } = await live(seed, [...steps, { after: 0, who: 0, what: 'start', ms: 0 }])
        await simulation.run(40_000)
        simulation.isWell = true
        await simulation.run(4 * LEASE_MS)
        expectServed(simulation)
      }),
      { numRuns: runs(30) },
    )
  })

  test('serves the hubs of a killed member again within its lease and five seconds', async () => {
    const { simulation, first } = await settled()
    expectServed(simulation)
    first.killed = true
    await simulation.run(LEASE_MS + 5_000)
    expectServed(simulation)
  })

  test('serves the hubs of a killed member again even if the watch of another member omitted its row', async () => {
    let chance = 0.5
    const simulation = new Simulation(() => chance)
    const killed = new Member(simulation, 'member-0', RESOURCES, LEASE_MS, 1)
    await simulation.run(3 * LEASE_MS)
    killed.killed = true
    // Make the simulated watch lose rows, as it does with a random value of 0.
    chance = 0
    const next = new Member(simulation, 'member-1', RESOURCES, LEASE_MS, 1)
    chance = 0.5
    await simulation.run(4 * LEASE_MS)
    expect(next.serves).toEqual(new Set(RESOURCES))
  })

  test('moves the hubs of a member that cannot work to others, and back when it can', async () => {
    const { simulation, first } = await settled()
    const before = first.serves
    first.unfitUntil = simulation.now + 5 * LEASE_MS
    await simulation.run(2 * LEASE_MS + 5_000)
    expect(first.serves).toEqual(new Set())
    expectServed(simulation)
    await simulation.run(4 * LEASE_MS)
    expect(first.serves).toEqual(before)
    expectServed(simulation)
  })

  test('moves no hubs to a member that cannot work, if the store is back before the broker', async () => {
    const { simulation, first } = await settled()
    const before = first.serves
    first.cutOffUntil = simulation.now + 3 * LEASE_MS
    first.unfitUntil = simulation.now + 8 * LEASE_MS
    await simulation.run(2 * LEASE_MS)
    const others = () =>
      simulation.members.flatMap((member) => (member !== first && member.isActing ? [...member.serves] : []))
    for (let ms = 0; ms < 6 * LEASE_MS; ms += 500) {
      await simulation.run(500)
      if (simulation.now >= first.unfitUntil) break
      expect(others().sort()).toEqual([...RESOURCES].sort())
    }
    await simulation.run(2 * LEASE_MS)
    expect(first.serves).toEqual(before)
    expectServed(simulation)
  })

  test('continues when no member can work: the last one keeps the hubs', async () => {
    const { simulation, members } = await settled()
    for (const member of members) member.unfitUntil = simulation.now + 4 * LEASE_MS
    await simulation.run(4 * LEASE_MS + 5_000)
    expectServed(simulation)
  })

  test('leaves hubs with their members if the store was unreachable for all, and one is back before the others', async () => {
    const { simulation, first, members } = await settled()
    const { epoch } = first.fleet.view
    for (const [i, member] of members.entries()) member.cutOffUntil = simulation.now + 2 * LEASE_MS + i * 3_000
    await simulation.run(4 * LEASE_MS)
    expect(first.fleet.view.epoch).toBe(epoch)
    expectServed(simulation)
  })

  // This was observed with three NATS servers 2.9.10: https://github.com/nats-io/nats-server/issues/4174
  test('accepts a member whose server counts the writes differently', async () => {
    const { simulation, first } = await settled()
    first.killed = true
    await simulation.run(3 * LEASE_MS)
    const again = new Member(simulation, first.name, RESOURCES, LEASE_MS, 1, 1)
    await simulation.run(3 * LEASE_MS)
    expect(again.serves).toEqual(first.serves)
    expectServed(simulation)
  })

  test('hands over within two seconds when a member ends cleanly', async () => {
    const { simulation, first } = await settled()
    void first.fleet.leave()
    await simulation.run(2_000)
    first.killed = true
    expectServed(simulation)
  })
})

describe('members that all end at the same time', () => {
  test('detect which of them was the last', async () => {
    const delays = fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: 0, max: 300 })))
    await fc.assert(
      fc.asyncProperty(fc.integer(), delays, async (seed, waits) => {
        const simulation = new Simulation(new Random(seed).next)
        const members = waits.map((_, i) => new Member(simulation, `member-${i}`, RESOURCES, LEASE_MS, 1))
        await simulation.run(LEASE_MS)
        simulation.isWell = true
        await simulation.run(4 * LEASE_MS)
        const answers: unknown[] = []
        const hasSaidSo = ({ name }: Member) =>
          simulation.store.get(`${simulation.losses}.${memberKey(name)}`)?.value.startsWith('{"gone":')
        for (const [i, member] of members.entries()) {
          simulation.at(waits[i] ?? 0, member, () => {
            void member.fleet.leave().then((left) => {
              answers.push(left === false && members.every(hasSaidSo) ? 'the last one' : left)
            })
          })
        }
        await simulation.run(5_000)
        // Sort the answers: the last member to leave may remove another one from the roster, which then answers later.
        expect(answers.sort()).toEqual(['the last one', true, true])
      }),
      { numRuns: runs(30), examples: [[-7, [33, 242, 73]]] },
    )
  })
})

describe('the owner of a hub', () => {
  test('changes only for the share of a member that joins or leaves', () => {
    const names = Array.from({ length: 1_000 }, (_, i) => `hub-${i}`)
    const before = names.map((name) => ownerOf(name, ['a', 'b', 'c']))
    const after = names.map((name) => ownerOf(name, ['a', 'b', 'c', 'd']))
    const moved = names.filter((_, i) => before[i] !== after[i])
    expect(moved.every((name) => ownerOf(name, ['a', 'b', 'c', 'd']) === 'd')).toBe(true)
    expect(moved.length).toBeGreaterThan(200)
    expect(moved.length).toBeLessThan(300)
  })

  test('does not depend on the order of the members', () => {
    for (const name of ['x', 'y', 'z']) expect(ownerOf(name, ['b', 'a', 'c'])).toBe(ownerOf(name, ['c', 'b', 'a']))
  })
})
