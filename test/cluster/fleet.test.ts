/** Tests members with leases, which run in this process and use a clock that the test advances. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { ownerOf } from '../../src/cluster/fleet.ts'
import type { RunningBridge } from '../support/bridge.ts'
import { APP, Fleet, idOf } from '../support/fleet.ts'
import { natsPath, startNats } from '../support/nats.ts'
import { retainedOn } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { restarts, test } from './rollout/rollouts.ts'

const NAMES = ['a', 'b', 'c']
const STEP_MS = 250

type Pass = (what: string, holds: () => boolean | Promise<boolean>) => Promise<void>

/** Returns a function that moves the clock, and waits for the broker after each step, until `holds` returns `true`. */
function passOf({ clock, observer }: Fleet, ready?: () => Promise<void>): Pass {
  return async (what, holds) => {
    const step = async () => {
      clock.jump(STEP_MS)
      await ready?.()
      await observer.publish('step', 'x')
      return holds()
    }
    await until(what, step, 60_000)
  }
}

/** Starts three members that share the hubs of a fleet. */
async function leasesOn(fleet: Fleet, env: Readonly<Record<string, Readonly<Record<string, string>>>> = {}) {
  const { observer } = fleet
  const nats = fleet.use(await startNats())
  const join = (name: string) => fleet.join(nats, name, env[name])
  const members = new Map(NAMES.map((name) => [name, join(name)]))
  // Wait for NATS, so that no lease ends early.
  const pass = passOf(fleet, () => nats.untilReady())
  const leased = {
    nats,
    members,
    pass,
    text: (topic: string) => observer.last(`hub2mqtt/${topic}`),
    everyLine: (text: string) => [...members.values()].every(({ lines }) => lines.some((line) => line.includes(text))),
    /** Resolves when every hub is online and one of these members is its owner. */
    served: (by: readonly string[]) => pass(`hubs served by ${by.join(', ')}`, () => fleet.isServed(by)),
    /** Restarts members, which then use the current hubs of the fleet. */
    restart: async (names: readonly string[]) => {
      await Promise.all(names.map((name) => members.get(name)?.stop()))
      const stoppedAt = fleet.clock.now()
      for (const name of names) members.set(name, join(name))
      const hasJoined = (name: string) =>
        Date.parse(fleet.payload('hub2mqtt/fleet').members?.[name]?.since) >= stoppedAt
      await pass('the members', () => names.every(hasJoined))
      await leased.served(NAMES)
    },
    refresh: async (hub: string) => (await fleet.ask('refresh', {}, hub)).ok,
  }
  await pass('a whole fleet', () => fleet.isWhole(NAMES))
  await leased.served(NAMES)
  return leased
}

const ONE_AFTER_ANOTHER = 'keep the topics of a hub until its owner has reloaded without the hub, then clear them'

/**
 * Removes a hub from the members' configurations, one after another. Its owner is the last.
 * @param restart restarts a member; default: reload all members instead
 */
async function removeHub(
  fleet: Fleet,
  members: ReadonlyMap<string, RunningBridge>,
  pass: Pass,
  restart?: (name: string) => Promise<void>,
) {
  const { observer, hubs, broker, clock } = fleet
  const device = `homeassistant/device/hub2mqtt--${idOf(1)}`
  const isOfHub = (topic: string) => topic.startsWith('hub2mqtt/h1/') || topic.startsWith(device)
  const topics = async () => [...(await retainedOn(broker.port)).keys()].filter(isOfHub)
  await pass('its devices', async () => (await topics()).filter((topic) => topic.startsWith(device)).length === 2)
  const { owner } = JSON.parse(observer.last('hub2mqtt/h1/info') || '{}')
  hubs.delete('h1')
  const others = [...members].filter(([name]) => name !== owner)
  expect(others).toHaveLength(members.size - 1)
  const before = observer.seen.length
  for (const [name, member] of others) {
    if (restart === undefined) member.reload(fleet.config())
    else await restart(name)
  }
  // Wait for more than the time between two repairs.
  const end = clock.now() + 5_000
  await pass('a repair', () => clock.now() >= end)
  const cleared = observer.seen.slice(before).filter(({ topic, text }) => isOfHub(topic) && text === '')
  expect(cleared.map(({ topic }) => topic)).toEqual([])
  members.get(owner)?.reload(fleet.config())
  await pass('no topics and devices', async () => (await topics()).length === 0)
}

/** Starts two members that share the hubs of a fleet by number. */
async function shardsOn(fleet: Fleet) {
  const { observer } = fleet
  const join = (name: string) => fleet.begin({ FLEET_SHARD: `${name.replace('shard-', '')}/2` })
  const members = new Map(['shard-1', 'shard-2'].map((name) => [name, join(name)]))
  await fleet.online()
  const pass = passOf(fleet)
  /** Restarts a member as if it had served a hub when it was killed. */
  const restartAfterServing = async (name: string) => {
    const state = `hub2mqtt/bridge/${name}/state`
    await members.get(name)?.stop()
    await observer.until('its end', () => observer.last(state) === 'offline')
    await observer.publish(`hub2mqtt/bridge/${name}/info`, '{"hubs":{"h1":{}}}', { retain: true })
    members.set(name, join(name))
    await observer.until('its start', () => observer.last(state) === 'online')
  }
  return { members, pass, restartAfterServing }
}

describe('bridges by number', { timeout: 120_000 }, () => {
  test('log how many hubs each of them has gained', async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { members } = await shardsOn(fleet)
    const lines = [...members.values()].flatMap((member) => member.lines)
    const gained = lines.filter((line) => line.includes('hubs of this member')).map((line) => JSON.parse(line))
    expect(gained.map(({ came }) => came)).toEqual(gained.map(({ hubs }) => hubs))
  })

  test(ONE_AFTER_ANOTHER, async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { members, pass } = await shardsOn(fleet)
    await removeHub(fleet, members, pass)
  })

  test('keep the topics of a hub if a member that served it is restarted without the hub', async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { members, pass, restartAfterServing } = await shardsOn(fleet)
    await removeHub(fleet, members, pass, restartAfterServing)
  })

  test.each(['former', 'new'])(
    'keep the devices of a hub whose new name belongs to another member, if the %s owner is reloaded first',
    async (first) => {
      await using fleet = await Fleet.build({ hubs: 3 })
      const { observer, hubs, clock } = fleet
      const { members, pass } = await shardsOn(fleet)
      const isDevice = (topic: string) => topic.startsWith(`homeassistant/device/hub2mqtt--${idOf(1)}`)
      const devices = () => new Set(observer.seen.map(({ topic }) => topic).filter(isDevice))
      await pass('its devices', () => devices().size === 2)
      const { owner } = fleet.payload('hub2mqtt/h1/info')
      const name = ['attic', 'barn', 'cabin', 'lodge', 'villa'].find((one) => ownerOf(one, members.keys()) !== owner)
      hubs.set(String(name), fleet.hub('h1'))
      hubs.delete('h1')
      const before = observer.seen.length
      const order = [...members].sort(([one]) => ((one === owner) === (first === 'former') ? -1 : 1))
      for (const [, member] of order) {
        member.reload(fleet.config())
        const end = clock.now() + 2_000
        await pass('a repair', () => clock.now() >= end)
      }
      const end = clock.now() + 20_000
      await pass('more than the delay before the devices of a removed hub are cleared', () => clock.now() >= end)
      const cleared = observer.seen.slice(before).filter(({ topic, text }) => isDevice(topic) && text === '')
      expect(cleared.map(({ topic }) => topic)).toEqual([])
      for (const topic of devices()) expect(observer.last(topic)).toContain(`hub2mqtt/${name}/`)
    },
  )
})

describe('a bridge without a fleet on the base topic of a fleet', { timeout: 60_000 }, () => {
  test.each(['before', 'after'])(
    'is on standby if it starts %s the fleet: each command is executed once',
    async (when) => {
      await using fleet = await Fleet.build({ hubs: 3 })
      const early = when === 'before' ? await fleet.bridge() : undefined
      await shardsOn(fleet)
      const bridge = early ?? fleet.begin()
      const standsBy = () => bridge.lines.some((line) => line.includes('this one stands by'))
      await until('the standby', standsBy)
      for (const hub of fleet.hubs.keys()) await fleet.ask('restart', {}, `${hub}/app/${APP}`)
      // The answers to a second round show that both bridges have received the first round.
      for (const hub of fleet.hubs.keys()) await fleet.ask('get', {}, `${hub}/app/${APP}`)
      expect(restarts(fleet)).toEqual([1, 1, 1])
    },
  )

  test('leaves no topics behind that only a bridge without a fleet publishes', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const former = ['info', 'health', 'log-level', 'discovery'].map((one) => `hub2mqtt/bridge/${one}`)
    const held = async () => [...(await retainedOn(fleet.broker.port)).keys()].filter((topic) => former.includes(topic))
    const bridge = await fleet.bridge()
    await until('its topics', async () => (await held()).length === former.length)
    await bridge.stop()
    await shardsOn(fleet)
    await until('their end', async () => (await held()).length === 0)
  })
})

describe.skipIf(natsPath === undefined)('bridges with leases', { timeout: 120_000 }, () => {
  test('stop when they cannot renew their leases, and continue when they can', async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { nats, pass, text, everyLine } = await leasesOn(fleet)
    nats.node(0).stop()
    await pass('the end of all leases', () => everyLine('this member stops'))
    await pass('the will of the leader', () => text('bridge/state') === 'offline')
    const health = (name: string) => fleet.payload(`hub2mqtt/bridge/${name}/health`)
    await pass('none of them to be ready', () => NAMES.every((name) => health(name).ready === false))
    expect(health('a').problems).toEqual([expect.stringContaining('has no lease')])
    // Ignore the requests that end sessions.
    const requests = () => [...fleet.hubs.values()].flatMap((hub) => hub.requests.map(({ path }) => path))
    const asked = () => requests().filter((path) => !path.startsWith('unsubscribe')).length
    const before = asked()
    const end = fleet.clock.now() + 5_000
    await pass('some polls', () => fleet.clock.now() >= end)
    expect(asked()).toBe(before)
    nats.node(0).cont()
    await pass('requests', () => asked() > before + 3)
    await pass('the hubs', () => text('bridge/state') === 'online' && fleet.isServed(NAMES))
  })

  test('start again when NATS returns without any of their data', async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { nats, pass, refresh } = await leasesOn(fleet)
    const before = fleet.payload('hub2mqtt/fleet').epoch
    await nats.node(0).kill()
    await nats.node(0).forget()
    await nats.node(0).restart()
    await pass('a whole fleet', () => {
      const { epoch, count } = fleet.payload('hub2mqtt/fleet')
      return epoch > before && count === NAMES.length
    })
    for (const hub of fleet.hubs.keys()) await until(`${hub} answers`, () => refresh(hub))
  })

  test('report another fleet on their base topic, which has another bucket, until that fleet ends', async () => {
    await using fleet = await Fleet.build({ hubs: 1 })
    const nats = fleet.use(await startNats())
    const pass = passOf(fleet, () => nats.untilReady())
    const own = fleet.join(nats, 'a')
    await pass('the first fleet', () => fleet.isWhole(['a']))
    const other = fleet.join(nats, 'x', { FLEET_BUCKET: 'another' })
    const problems = (name: string) => fleet.payload(`hub2mqtt/bridge/${name}/health`).problems ?? []
    const OTHER = 'another hub2mqtt uses the same base topic'
    await pass('both reports', () => ['a', 'x'].every((name) => problems(name).includes(OTHER)))
    for (const { lines } of [own, other]) {
      expect(lines.filter((line) => line.includes('another fleet uses the same base topic'))).toHaveLength(1)
    }
    await other.stop()
    await pass('no report', () => !problems('a').includes(OTHER))
  })

  test('leave their hubs to other members while they cannot reach the broker', async () => {
    await using fleet = await Fleet.build({ hubs: 6 })
    const line = fleet.use(await TcpProxy.to(fleet.broker.port))
    const leased = await leasesOn(fleet, { a: { MQTT_URL: `mqtt://127.0.0.1:${line.port}` } })
    const owners = fleet.owners()
    line.cut()
    await leased.served(['b', 'c'])
    line.heal()
    await leased.pass('its hubs again', () => isDeepStrictEqual(fleet.owners(), owners))
    for (const hub of fleet.hubs.keys()) expect(await leased.refresh(hub)).toBe(true)
  })

  test(ONE_AFTER_ANOTHER, async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const { members, pass } = await leasesOn(fleet)
    await removeHub(fleet, members, pass)
  })

  /** The topic of another program below the same base topic. */
  const FOREIGN = 'hub2mqtt/kitchen/info'

  test.for([
    ['all of them have been stopped', [NAMES]],
    ['each of them has been restarted', NAMES.map((name) => [name])],
  ] as const)(
    'clear the topics of a hub that their configuration has lost after %s, and no others',
    async ([, groups]) => {
      await using fleet = await Fleet.build({ hubs: 6 })
      const { pass, restart } = await leasesOn(fleet)
      const retained = async (...parts: string[]) =>
        [...(await retainedOn(fleet.broker.port)).keys()].filter((topic) =>
          parts.some((part) => topic.startsWith(part)),
        )
      const topicsOf = (house: number) =>
        retained(`hub2mqtt/h${house}/`, `homeassistant/device/hub2mqtt--${idOf(house)}`)
      const others = async () => (await Promise.all([0, 2, 3, 4, 5].map(topicsOf))).flat().sort()
      await fleet.observer.publish(FOREIGN, '{"owner":"a"}', { retain: true })
      await pass('all devices', async () => (await retained('homeassistant/device/hub2mqtt--')).length === 12)
      expect((await retained('hub2mqtt/h1/')).length).toBeGreaterThan(3)
      const before = await others()
      fleet.hubs.delete('h1')
      for (const group of groups) await restart(group)
      await pass('no topics', async () => (await retained('hub2mqtt/h1/')).length === 0)
      await pass('all topics of the other hubs', async () => isDeepStrictEqual(await others(), before))
      expect(await retained('hub2mqtt/kitchen/')).toEqual([FOREIGN])
    },
  )
})
