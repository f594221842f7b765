import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LEADER, ownerOf } from '../../src/cluster/fleet.ts'
import { FLEET } from '../../src/contract/schemas.ts'
import { Fleet, numbered } from '../support/fleet.ts'
import { type Nats, natsPath, startNats } from '../support/nats.ts'
import { until } from '../support/until.ts'
import {
  forget,
  type Member,
  type MemberRequest,
  type MembersOptions,
  memberRequests,
  startMembers,
  whole,
} from './members.ts'

/** Fleets run in parallel, because their cases mostly wait. The cases of one fleet run one after another. */
const CONCURRENT = { concurrent: true, timeout: 120_000 }
const IN_TURN = { concurrent: false }

/** Starts a fleet, and restarts its stopped members before each case. */
function fleetOf(hubs: number, options: () => MembersOptions) {
  let fleet: Fleet
  let members: readonly Member[]
  beforeAll(async () => {
    await using open = new AsyncDisposableStack()
    fleet = open.use(await Fleet.build({ hubs: numbered(hubs, {}) }))
    members = await startMembers(fleet, options())
    const started = open.move()
    return () => started.disposeAsync()
  })
  beforeEach(() => whole(fleet, members), 90_000)
  const member = (wanted: string) => {
    const found = members.find(({ name }) => name === wanted)
    if (found === undefined) throw new RangeError(`no member ${wanted}`)
    return found
  }
  return () => ({ fleet, member })
}

describe('bridges that share hubs by number', CONCURRENT, () => {
  const NAMES = ['shard-1', 'shard-2']
  const leader = ownerOf(LEADER, NAMES) ?? ''
  const other = leader === 'shard-1' ? 'shard-2' : 'shard-1'
  const members = { 'shard-1': { shard: '1/2' }, 'shard-2': { shard: '2/2' } }
  const scene = fleetOf(8, () => ({ members }))

  test('serve each hub once, and publish its owner', IN_TURN, async () => {
    const { fleet } = scene()
    const owners = [...fleet.owners().values()]
    expect(new Set(owners)).toEqual(new Set(NAMES))
    for (const [hub, owner] of fleet.owners()) {
      const by = new Set(memberRequests(fleet).flatMap((one) => (one.hub === hub ? [one.member] : [])))
      expect(by).toEqual(new Set([owner]))
    }
    expect(v.safeParse(FLEET, fleet.payload('hub2mqtt/fleet')).issues).toBeUndefined()
    expect(fleet.payload('hub2mqtt/fleet')).toMatchObject({
      mode: 'static',
      count: 2,
      members: Object.fromEntries(
        NAMES.map((name) => [name, { since: null, hubs: owners.filter((one) => one === name).length }]),
      ),
    })
    for (const topic of [...NAMES.map((name) => `bridge/${name}/state`), 'bridge/state']) {
      await until(`online on ${topic}`, () => fleet.observer.last(`hub2mqtt/${topic}`) === 'online')
    }
  })

  test('answer each command once: for any hub, for no hub, and for an unknown hub', IN_TURN, async () => {
    const { fleet } = scene()
    forget(fleet)
    await until('a speaker', () => fleet.observer.last('hub2mqtt/bridge/state') === 'online')
    const perHub = [...fleet.hubs.keys()].map((hub) => ['get-apps', hub] as const)
    const answered = [...perHub, ['ping', 'bridge'], ['refresh', 'h99']] as const
    const askAll = () => Promise.all(answered.map(([command, of]) => fleet.ask(command, {}, of)))
    await askAll()
    // Send all commands again: a second answer to the first round would arrive before the answers to this round.
    await askAll()
    const results = fleet.observer.seen.filter(({ topic }) => topic.includes('/result/'))
    expect(results).toHaveLength(2 * answered.length)
    expect(results.filter(({ text }) => text.includes('unknown_hub'))).toHaveLength(2)
  })

  test.each([
    ['the leader', leader],
    ['the other member', other],
  ])('are unavailable in Home Assistant only for their own hubs when %s is killed', IN_TURN, async (_, killed) => {
    const { fleet, member } = scene()
    // Returns, for each hub, whether all availability topics of its device are online.
    const available = () =>
      new Map(
        [...fleet.owners()].map(([hub, owner]) => {
          const own = fleet.observer.seen.filter(
            ({ topic, text }) => topic.startsWith('homeassistant/device/') && text.includes(`"hub2mqtt/${hub}/state"`),
          )
          const topics = own.flatMap(({ text }) => JSON.parse(text).availability ?? [])
          return [
            `${owner} ${hub}`,
            topics.length > 0 && topics.every(({ topic }) => fleet.observer.last(topic) === 'online'),
          ]
        }),
      )
    await until('all', () => [...available().values()].every((one) => one))
    await member(killed).process.stop('SIGKILL')
    await until('those of the killed one to go', () =>
      [...available()].every(([name, one]) => one === !name.startsWith(killed)),
    )
  })

  test('publish offline when the leader has ended, and not before', IN_TURN, async () => {
    const { fleet, member } = scene()
    const state = () => fleet.observer.last('hub2mqtt/bridge/state')
    await until('a speaker', () => state() === 'online')
    await member(other).process.stop('SIGTERM')
    expect(state()).toBe('online')
    await member(leader).process.stop('SIGTERM')
    await until('offline', () => state() === 'offline')
  })
})

const NAMES = ['a', 'b', 'c']

/** Messages within this time may be read in either order, because they arrive on two connections. */
const SAME_MOMENT_MS = 100

/** Returns pairs of consecutive requests to a hub that came from different members. */
function changes(all: readonly MemberRequest[], hub: string) {
  const asked = all.filter((one) => one.hub === hub)
  return asked.flatMap((one, i) => {
    const before = asked[i - 1]
    if (before === undefined || before.member === one.member) return []
    return [{ from: before.member, to: one.member, afterMs: one.at - before.at }]
  })
}

describe.skipIf(natsPath === undefined)('bridges that share hubs by leases', CONCURRENT, () => {
  let nats: Nats
  beforeAll(async () => {
    nats = await startNats()
    return () => nats[Symbol.asyncDispose]()
  })
  const scene = fleetOf(6, () => ({
    members: Object.fromEntries(NAMES.map((member) => [member, { member, lease: '5s' }])),
    natsPorts: nats.nodes.map(({ port }) => port),
  }))

  test('take over the hubs of one that is killed, and no other member sends them requests', IN_TURN, async () => {
    const { fleet, member } = scene()
    forget(fleet)
    const lost = [...fleet.owners()].filter(([, owner]) => owner === 'a').map(([hub]) => hub)
    expect(lost.length).toBeGreaterThan(0)
    await member('a').process.stop('SIGKILL')
    await fleet.served(['b', 'c'])
    for (const hub of lost) expect((await fleet.ask('refresh', {}, hub)).ok).toBe(true)
    for (const hub of fleet.hubs.keys()) {
      const away = changes(memberRequests(fleet), hub).filter(({ from }) => from === 'a')
      expect(away.length).toBeLessThanOrEqual(1)
    }
    expect(fleet.payload('hub2mqtt/fleet')).toMatchObject({ mode: 'leases', count: 2 })
    expect(fleet.observer.last('hub2mqtt/bridge/a/state')).toBe('offline')
    expect(fleet.observer.last('hub2mqtt/bridge/state')).toBe('online')
  })

  test('hand over without a gap in state when one ends, and when one starts', IN_TURN, async () => {
    const { fleet, member } = scene()
    const before = fleet.observer.seen.length
    const seen = () => fleet.observer.seen.slice(before)
    await member('a').process.stop('SIGTERM')
    await until('two', () => fleet.payload('hub2mqtt/fleet').count === 2)
    const has = (hub: string) => seen().some(({ topic }) => topic === `hub2mqtt/${hub}/info`)
    await until('new owners', () => [...fleet.hubs.keys()].every(has))
    member('a').run()
    await until('three', () => fleet.payload('hub2mqtt/fleet').count === 3)
    await until('hubs of the new one', () => [...fleet.owners().values()].includes('a'))
    const states = seen().filter(({ topic }) => /^hub2mqtt\/(h\d+|bridge)\/state$/.test(topic))
    expect(states.filter(({ text }) => text !== 'online').map(({ topic }) => topic)).toEqual([])
    const cleared = seen().filter(({ text, retain }) => retain && text === '')
    expect(cleared.map(({ topic }) => topic)).toEqual([])
  })

  test('send no requests to hubs that other members have taken over during a suspension', IN_TURN, async () => {
    const { fleet, member } = scene()
    const owners = fleet.owners()
    const stopped = member('a').process
    stopped.signal('SIGSTOP')
    await fleet.served(['b', 'c'])
    const wokenAt = Date.now()
    stopped.signal('SIGCONT')
    await until('its hubs again', () => isDeepStrictEqual(fleet.owners(), owners), 60_000)
    // After its suspension, the member sends requests only after the other member's last request, except to end its old
    // session.
    const since = memberRequests(fleet, wokenAt).filter(({ path }) => !path.startsWith('unsubscribe'))
    for (const hub of fleet.hubs.keys()) {
      const away = changes(since, hub).filter(({ from, afterMs }) => from === 'a' && afterMs > SAME_MOMENT_MS)
      expect(away).toEqual([])
    }
  })

  test('publish offline when all of them end at the same time', IN_TURN, async () => {
    const { fleet, member } = scene()
    await Promise.all(NAMES.map((name) => member(name).process.stop('SIGTERM')))
    await until('offline', () => fleet.observer.last('hub2mqtt/bridge/state') === 'offline')
  })
})
