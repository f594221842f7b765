import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LEADER, ownerOf } from '../../src/cluster/fleet.ts'
import { FLEET } from '../../src/contract/schemas.ts'
import { type Nats, natsPath, startNats } from '../support/nats.ts'
import { until } from '../support/until.ts'
import { type Asked, Members, type MembersOptions } from './members.ts'

/** Fleets run in parallel, because their cases mostly wait. The cases of one fleet run one after another. */
const CONCURRENT = { concurrent: true, timeout: 120_000 }
const IN_TURN = { concurrent: false }

/** Starts a fleet, and restarts its stopped members before each case. */
function fleetOf(names: readonly string[], options: () => MembersOptions): () => Members {
  let world: Members
  beforeAll(async () => {
    world = await Members.start(options())
    return () => world[Symbol.asyncDispose]()
  })
  beforeEach(() => world.whole(names), 90_000)
  return () => world
}

describe('bridges that share hubs by number', CONCURRENT, () => {
  const NAMES = ['shard-1', 'shard-2']
  const speaker = ownerOf(LEADER, NAMES) === NAMES[0] ? 0 : 1
  const members = NAMES.map((_, i) => ({ fleet: { shard: `${i + 1}/2` } }))
  const fleet = fleetOf(NAMES, () => ({ hubs: 8, members }))

  test('serve each hub once, and publish its owner', IN_TURN, async () => {
    const world = fleet()
    const owners = [...world.owners().values()]
    expect(new Set(owners)).toEqual(new Set(NAMES))
    for (const [hub, owner] of world.owners()) {
      const by = new Set(world.asked().flatMap((one) => (one.hub === hub ? [`shard-${one.member + 1}`] : [])))
      expect(by).toEqual(new Set([owner]))
    }
    expect(v.safeParse(FLEET, world.payload('hub2mqtt/fleet')).issues).toBeUndefined()
    expect(world.payload('hub2mqtt/fleet')).toMatchObject({
      mode: 'static',
      count: 2,
      members: Object.fromEntries(
        NAMES.map((name) => [name, { since: null, hubs: owners.filter((one) => one === name).length }]),
      ),
    })
    for (const topic of [...NAMES.map((name) => `bridge/${name}/state`), 'bridge/state']) {
      await until(`online on ${topic}`, () => world.observer.last(`hub2mqtt/${topic}`) === 'online')
    }
  })

  test('answer each command once: for any hub, for no hub, and for an unknown hub', IN_TURN, async () => {
    const world = fleet()
    world.forget()
    await until('a speaker', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
    const perHub = [...world.hubs.keys()].map((hub) => ['get-apps', hub] as const)
    const answered = [...perHub, ['ping', 'bridge'], ['refresh', 'h99']] as const
    const askAll = () => Promise.all(answered.map(([command, of]) => world.ask(command, {}, of)))
    await askAll()
    // Send all commands again: a second answer to the first round would arrive before the answers to this round.
    await askAll()
    const results = world.observer.seen.filter(({ topic }) => topic.includes('/result/'))
    expect(results).toHaveLength(2 * answered.length)
    expect(results.filter(({ text }) => text.includes('unknown_hub'))).toHaveLength(2)
  })

  test.each([
    ['the leader', speaker],
    ['the other member', 1 - speaker],
  ])('are unavailable in Home Assistant only for their own hubs when %s is killed', IN_TURN, async (_, killed) => {
    const world = fleet()
    // Returns, for each hub, whether all availability topics of its device are online.
    const available = () =>
      new Map(
        [...world.owners()].map(([hub, owner]) => {
          const own = world.observer.seen.filter(
            ({ topic, text }) => topic.startsWith('homeassistant/device/') && text.includes(`"hub2mqtt/${hub}/state"`),
          )
          const topics = own.flatMap(({ text }) => JSON.parse(text).availability ?? [])
          return [
            `${owner} ${hub}`,
            topics.length > 0 && topics.every(({ topic }) => world.observer.last(topic) === 'online'),
          ]
        }),
      )
    await until('all', () => [...available().values()].every((one) => one))
    await world.process(killed).stop('SIGKILL')
    await until('those of the killed one to go', () =>
      [...available()].every(([name, one]) => one === !name.startsWith(String(NAMES[killed]))),
    )
  })

  test('publish offline when the leader has ended, and not before', IN_TURN, async () => {
    const world = fleet()
    const state = () => world.observer.last('hub2mqtt/bridge/state')
    await until('a speaker', () => state() === 'online')
    await world.process(1 - speaker).stop('SIGTERM')
    expect(state()).toBe('online')
    await world.process(speaker).stop('SIGTERM')
    await until('offline', () => state() === 'offline')
  })
})

const NAMES = ['a', 'b', 'c']

/** Messages within this time may be read in either order, because they arrive on two connections. */
const SAME_MOMENT_MS = 100

/** Returns pairs of consecutive requests to a hub that came from different members. */
function changes(all: readonly Asked[], hub: string) {
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
  const fleet = fleetOf(NAMES, () => {
    return { hubs: 6, members: NAMES.map((member) => ({ fleet: { nats: nats.urls, lease: '5s', member } })) }
  })

  test('take over the hubs of one that is killed, and no other member sends them requests', IN_TURN, async () => {
    const world = fleet()
    world.forget()
    const lost = [...world.owners()].filter(([, owner]) => owner === 'a').map(([hub]) => hub)
    expect(lost.length).toBeGreaterThan(0)
    await world.process(0).stop('SIGKILL')
    await world.served(['b', 'c'])
    for (const hub of lost) expect((await world.ask('refresh', {}, hub)).ok).toBe(true)
    for (const hub of world.hubs.keys()) {
      const away = changes(world.asked(), hub).filter(({ from }) => from === 0)
      expect(away.length).toBeLessThanOrEqual(1)
    }
    expect(world.payload('hub2mqtt/fleet')).toMatchObject({ mode: 'leases', count: 2 })
    expect(world.observer.last('hub2mqtt/bridge/a/state')).toBe('offline')
    expect(world.observer.last('hub2mqtt/bridge/state')).toBe('online')
  })

  test('hand over without a gap in state when one ends, and when one starts', IN_TURN, async () => {
    const world = fleet()
    const before = world.observer.seen.length
    const seen = () => world.observer.seen.slice(before)
    await world.process(0).stop('SIGTERM')
    await until('two', () => world.payload('hub2mqtt/fleet').count === 2)
    const has = (hub: string) => seen().some(({ topic }) => topic === `hub2mqtt/${hub}/info`)
    await until('new owners', () => [...world.hubs.keys()].every(has))
    world.run(0)
    await until('three', () => world.payload('hub2mqtt/fleet').count === 3)
    await until('hubs of the new one', () => [...world.owners().values()].includes('a'))
    const states = seen().filter(({ topic }) => /^hub2mqtt\/(h\d+|bridge)\/state$/.test(topic))
    expect(states.filter(({ text }) => text !== 'online').map(({ topic }) => topic)).toEqual([])
    const cleared = seen().filter(({ text, retain }) => retain && text === '')
    expect(cleared.map(({ topic }) => topic)).toEqual([])
  })

  test('send no requests to hubs that other members have taken over during a suspension', IN_TURN, async () => {
    const world = fleet()
    const owners = world.owners()
    const stopped = world.process(0)
    stopped.signal('SIGSTOP')
    await world.served(['b', 'c'])
    const wokenAt = Date.now()
    stopped.signal('SIGCONT')
    await until('its hubs again', () => isDeepStrictEqual(world.owners(), owners), 60_000)
    // After its suspension, the member sends requests only after the other member's last request, except to end its old
    // session.
    const since = world.asked(wokenAt).filter(({ path }) => !path.startsWith('unsubscribe'))
    for (const hub of world.hubs.keys()) {
      const away = changes(since, hub).filter(({ from, afterMs }) => from === 0 && afterMs > SAME_MOMENT_MS)
      expect(away).toEqual([])
    }
  })

  test('publish offline when all of them end at the same time', IN_TURN, async () => {
    const world = fleet()
    await Promise.all(NAMES.map((_, i) => world.process(i).stop('SIGTERM')))
    await until('offline', () => world.observer.last('hub2mqtt/bridge/state') === 'offline')
  })
})
