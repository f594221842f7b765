import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LEADER } from '../../src/cluster/fleet.ts'
import { ownerOf } from '../../src/cluster/rendezvous.ts'
import { FLEET } from '../../src/contract/schemas.ts'
import { natsPath, startNats } from '../support/nats.ts'
import { until } from '../support/until.ts'
import { type Asked, Members, type MembersOptions } from './members.ts'

async function started(options: MembersOptions): Promise<Members> {
  const members = await Members.start(options)
  onTestFinished(() => members[Symbol.asyncDispose]())
  return members
}

const QUIET_MS = 3_000

describe('bridges that share hubs by number', () => {
  const shards = (count: number) => Array.from({ length: count }, (_, i) => ({ fleet: { shard: `${i + 1}/${count}` } }))
  const NAMES = ['shard-1', 'shard-2']

  test('serve each hub once, and say who does', async () => {
    const world = await started({ hubs: 8, members: shards(2) })
    await world.served(NAMES)
    await until('the fleet', () => world.payload('hub2mqtt/fleet') !== undefined)
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
      await until(`online on ${topic}`, () => world.text(`hub2mqtt/${topic}`) === 'online')
    }
  })

  test('answer each command once: for any hub, for none, and for one that there is not', async () => {
    const world = await started({ hubs: 4, members: shards(2) })
    await world.served(NAMES)
    await until('a speaker', () => world.text('hub2mqtt/bridge/state') === 'online')
    const topics = [...world.hubs.keys()].map((hub) => `${hub}/cmd/get-apps`)
    const answered = []
    for (const topic of [...topics, 'bridge/cmd/ping', 'hub-99/cmd/refresh']) answered.push(topic)
    await Promise.all(answered.map((topic) => world.command(topic)))
    // Whoever else would answer has had the time for it.
    await Promise.all(answered.map((topic) => world.command(topic)))
    const results = world.observer.seen.filter(({ topic }) => topic.includes('/result/'))
    expect(results).toHaveLength(2 * answered.length)
    expect(results.filter(({ text }) => text.includes('unknown_hub'))).toHaveLength(2)
  })

  test.each([
    ['the one that speaks', true],
    ['the other one', false],
  ])('are unavailable in Home Assistant for their own hubs alone when %s is killed', async (_, speaks) => {
    const world = await started({ hubs: 4, members: shards(2) })
    await world.served(NAMES)
    const speaker = ownerOf(LEADER, NAMES) === NAMES[0] ? 0 : 1
    const killed = speaks ? speaker : 1 - speaker
    // By hub: whether all that its device names as its availability is online.
    const available = () =>
      new Map(
        [...world.owners()].map(([hub, owner]) => {
          const own = world.observer.seen.filter(
            ({ topic, text }) => topic.startsWith('homeassistant/device/') && text.includes(`"hub2mqtt/${hub}/state"`),
          )
          const topics = own.flatMap(({ text }) => JSON.parse(text).availability ?? [])
          return [`${owner} ${hub}`, topics.length > 0 && topics.every(({ topic }) => world.text(topic) === 'online')]
        }),
      )
    await until('all', () => [...available().values()].every((one) => one))
    await world.process(killed).stop('SIGKILL')
    await until('those of the killed one to go', () =>
      [...available()].every(([name, one]) => one === !name.startsWith(String(NAMES[killed]))),
    )
  })

  test('say offline once the one that speaks has ended, and not before', async () => {
    const world = await started({ hubs: 4, members: shards(2) })
    const state = () => world.text('hub2mqtt/bridge/state')
    await until('a speaker', () => state() === 'online')
    const speaker = ownerOf(LEADER, NAMES) === NAMES[0] ? 0 : 1
    await world.process(1 - speaker).stop('SIGTERM')
    expect(state()).toBe('online')
    await world.process(speaker).stop('SIGTERM')
    await until('offline', () => state() === 'offline')
  })
})

describe.skipIf(natsPath === undefined)('bridges that share hubs by leases', () => {
  const NAMES = ['a', 'b', 'c']
  /** With `lines`, what lies between members and servers can be cut. */
  async function three(hubs = 6, { lines = false } = {}) {
    const nats = await startNats()
    onTestFinished(() => nats[Symbol.asyncDispose]())
    const members = NAMES.map((member) => ({ fleet: { nats: nats.urls, lease: '5s', member } }))
    const world = await started({ hubs, members, ...(lines && { natsPorts: nats.nodes.map(({ port }) => port) }) })
    await world.served(NAMES)
    await until('all of them', () => Object(world.payload('hub2mqtt/fleet')).count === 3, 60_000)
    await world.served(NAMES)
    return { world, nats }
  }

  /** What arrives at the same moment on two connections may be read in either order. */
  const SAME_MOMENT_MS = 100

  /** Requests to hubs, one after the other, as pairs of those that came from different members. */
  function changes(all: readonly Asked[], hub: string) {
    const asked = all.filter((one) => one.hub === hub)
    return asked.flatMap((one, i) => {
      const before = asked[i - 1]
      if (before === undefined || before.member === one.member) return []
      return [{ from: before.member, to: one.member, afterMs: one.at - before.at }]
    })
  }

  test('take over the hubs of one that is killed, and nobody else asks them', async () => {
    const { world } = await three()
    const lost = [...world.owners()].filter(([, owner]) => owner === 'a').map(([hub]) => hub)
    expect(lost.length).toBeGreaterThan(0)
    await world.process(0).stop('SIGKILL')
    await world.served(['b', 'c'])
    for (const hub of lost) expect((await world.command(`${hub}/cmd/refresh`))[0]?.ok).toBe(true)
    for (const hub of world.hubs.keys()) {
      const away = changes(world.asked(), hub).filter(({ from }) => from === 0)
      expect(away.length).toBeLessThanOrEqual(1)
    }
    expect(world.payload('hub2mqtt/fleet')).toMatchObject({ mode: 'leases', count: 2 })
    expect(world.text('hub2mqtt/bridge/a/state')).toBe('offline')
    expect(world.text('hub2mqtt/bridge/state')).toBe('online')
  }, 120_000)

  test('hand over without a gap in state when one ends, and when one comes', async () => {
    const { world } = await three()
    world.observer.forget()
    await world.process(0).stop('SIGTERM')
    await until('two', () => Object(world.payload('hub2mqtt/fleet')).count === 2)
    const has = (hub: string) => world.observer.seen.some(({ topic }) => topic === `hub2mqtt/${hub}/info`)
    await until('new owners', () => [...world.hubs.keys()].every(has))
    world.run(0)
    await until('three', () => Object(world.payload('hub2mqtt/fleet')).count === 3)
    await until('hubs of the new one', () => [...world.owners().values()].includes('a'))
    const states = world.observer.seen.filter(({ topic }) => /^hub2mqtt\/(hub-\d+|bridge)\/state$/.test(topic))
    expect(states.filter(({ text }) => text !== 'online').map(({ topic }) => topic)).toEqual([])
    const cleared = world.observer.seen.filter(({ text, retain }) => retain && text === '')
    expect(cleared.map(({ topic }) => topic)).toEqual([])
  }, 120_000)

  test('leave their hubs to the others while they cannot reach the broker', async () => {
    const { world } = await three(6, { lines: true })
    const owners = world.owners()
    const { broker } = world.lines(0)
    broker.refuse(true)
    broker.reset()
    await world.served(['b', 'c'])
    broker.heal()
    await until('its hubs again', () => isDeepStrictEqual(world.owners(), owners), 60_000)
    for (const hub of world.hubs.keys()) expect((await world.command(`${hub}/cmd/refresh`))[0]?.ok).toBe(true)
  }, 120_000)

  test('say offline when all of them end at a time', async () => {
    const { world } = await three(3)
    await Promise.all(NAMES.map((_, i) => world.process(i).stop('SIGTERM')))
    await until('offline', () => world.text('hub2mqtt/bridge/state') === 'offline')
  }, 120_000)

  test('ask nothing of hubs that others have taken while they stood still', async () => {
    const { world } = await three()
    const owners = world.owners()
    const stopped = world.process(0)
    stopped.signal('SIGSTOP')
    await world.served(['b', 'c'])
    const wokenAt = Date.now()
    stopped.signal('SIGCONT')
    await until('its hubs again', () => isDeepStrictEqual(world.owners(), owners), 60_000)
    // Each hub hears of it only after the last word of who had it meanwhile; but for the end of its own former session.
    const since = world.asked(wokenAt).filter(({ path }) => !path.startsWith('unsubscribe'))
    for (const hub of world.hubs.keys()) {
      const away = changes(since, hub).filter(({ from, afterMs }) => from === 0 && afterMs > SAME_MOMENT_MS)
      expect(away).toEqual([])
    }
  }, 120_000)

  test('stop when they cannot renew their leases, and go on when they can', async () => {
    const { world, nats } = await three(3)
    nats.node(0).stop()
    await until(
      'the end of all leases',
      () => NAMES.every((_, i) => world.process(i).lines.some((line) => line.includes('this member stops'))),
      60_000,
    )
    await until('the will of who spoke', () => world.text('hub2mqtt/bridge/state') === 'offline')
    // They end their sessions meanwhile.
    const all = () => world.asked().filter(({ path }) => !path.startsWith('unsubscribe')).length
    const asked = all()
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS))
    expect(all()).toBe(asked)
    nats.node(0).cont()
    await until('requests', () => all() > asked + 3, 60_000)
    await until('a speaker', () => world.text('hub2mqtt/bridge/state') === 'online')
    expect([...world.hubs.keys()].map((hub) => world.text(`hub2mqtt/${hub}/state`))).toEqual([
      'online',
      'online',
      'online',
    ])
  }, 120_000)

  test('begin anew when NATS comes back with nothing of what they had written down', async () => {
    const { world, nats } = await three(3)
    const before = Number(Object(world.payload('hub2mqtt/fleet')).epoch)
    const node = nats.node(0)
    await node.kill()
    await node.forget()
    await node.restart()
    const isWhole = () => {
      const { epoch, count } = Object(world.payload('hub2mqtt/fleet'))
      return Number(epoch) > before && count === NAMES.length
    }
    await until('a whole fleet', isWhole, 60_000)
    for (const hub of world.hubs.keys()) {
      await until(`${hub} answers`, async () => (await world.command(`${hub}/cmd/refresh`))[0]?.ok === true, 60_000)
    }
  }, 120_000)
})
