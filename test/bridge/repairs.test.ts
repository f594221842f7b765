import { describe, expect } from 'vitest'
import { Prefixes } from '../../src/bridge/former.ts'
import { Upkeep } from '../../src/bridge/upkeep.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { BROKERS } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { silentLog } from '../support/silent-log.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

const APP = 'home/app/com.athom.hue'
const SETTING = `${APP}/setting/mode`
const file = 'settings:\n  publish:\n    com.athom.hue:\n      mode: text\n      other: text\n'

function published({ observer }: World, topic: string): Promise<string> {
  return until(`something on ${topic}`, () => observer.last(`hub2mqtt/${topic}`) || undefined)
}

describe.concurrent.each(BROKERS)('on %s, what another client', (broker) => {
  test.override({ options: { broker } })

  const topics = [
    'bridge/state',
    'bridge/info',
    'bridge/health',
    'bridge/log-level',
    'bridge/discovery',
    'home/state',
    'home/info',
    'home/summary',
    APP,
    `${APP}/update`,
    SETTING,
  ]

  test('clears or forges on a topic of the bridge or of a hub is repaired within five seconds', async () => {
    await using world = await World.start({ broker, file })
    const { observer } = world
    await world.request(`${APP}/cmd/set-setting/mode`, '"x"')
    // Test `offline` too, because the bridge handles it separately on its state topic.
    for (const payload of ['', 'offline']) {
      const right = new Map<string, string>()
      for (const topic of topics) right.set(topic, await published(world, topic))
      await Promise.all(topics.map((topic) => observer.publish(`hub2mqtt/${topic}`, payload, { retain: true })))
      for (const [topic, text] of right) {
        await until(`the right ${topic}`, () => observer.last(`hub2mqtt/${topic}`) === text, 5_000)
      }
    }
  })

  test('invents for a hub is cleared within five seconds', async () => {
    await using world = await World.start({ broker, file })
    const { observer } = world
    const made = ['home/app/ghost', 'home/app/ghost/update', `${APP}/setting/secret`, `${APP}/setting/other`]
    for (const topic of made) await observer.publish(`hub2mqtt/${topic}`, '{}', { retain: true })
    for (const topic of made) await until(`no ${topic}`, () => observer.last(`hub2mqtt/${topic}`) === '', 5_000)
  })
})

/** Creates an `Upkeep` for a hub whose list and identity are known. */
function keeping() {
  const clock = new FakeClock()
  const status = { id: 'H1', api: 'manager', reason: null } as const
  const hub = { status, apps: { complete: true, firstIsPartial: false }, refresh: () => Promise.resolve() }
  const done: string[] = []
  const upkeep = new Upkeep({
    topics: createTopics('hub2mqtt'),
    hubs: new Map([['home', { hub }]]),
    states: new Map(),
    live: { value: { hubs: { home: {} } } },
    isShared: false,
    rollouts: { held: new Set() },
    prefixes: new Prefixes('homeassistant', 'hub2mqtt/bridge/discovery'),
    homeAssistant: { has: () => true, swept: () => {}, touched: (topic) => done.push(`put back ${topic}`) },
    link: {
      refresh: (topics) => done.push([...topics].join()),
      sweep: () => 0,
      startOver: () => done.push('everything'),
    },
    early: { role: 'active' },
    onSettled: () => {},
    clock,
    log: silentLog,
  })
  return { upkeep, clock, done }
}

test.concurrent('a topic that is forged again and again is repaired every few seconds, not each time', async () => {
  const { upkeep, clock, done } = keeping()
  for (let ms = 0; ms < 20_000; ms += 10) {
    upkeep.touched('hub2mqtt/home/state', 'forged')
    await clock.advance(10)
  }
  expect(done).toEqual(Array.from({ length: 5 }, () => 'hub2mqtt/home/state'))
  await clock.advance(5_000)
  upkeep.stop()
  expect(clock.pending).toBe(0)
})

describe.concurrent('a device that another bridge with a different base topic publishes too', () => {
  const TOPIC = 'homeassistant/device/hub2mqtt--H1/config'
  const deviceOf = (base: string) =>
    JSON.stringify({ origin: { name: 'hub2mqtt' }, availability: [{ topic: `${base}/bridge/state` }] })
  /** The other bridge restores its device each time, a second later. Moves the clock by `ms`. */
  const fight = async ({ upkeep, clock, done }: ReturnType<typeof keeping>, ms: number) => {
    const before = done.length
    let answered = before
    for (let passed = 0; passed < ms; passed += 1_000) {
      if (done.length > answered) upkeep.touched(TOPIC, deviceOf('other'))
      answered = done.length
      await clock.advance(1_000)
    }
    return done.slice(before)
  }

  test('is restored twice, and then left to that bridge, which is reported', async () => {
    const keeper = keeping()
    const { upkeep, clock } = keeper
    upkeep.touched(TOPIC, deviceOf('other'))
    expect(await fight(keeper, 60_000)).toEqual([TOPIC, TOPIC])
    expect(upkeep.yields).toBe(true)
    // A repair of other topics, such as for `refresh`, includes the device, but starts no new fight.
    upkeep.touched('hub2mqtt/home/state', 'forged')
    expect(await fight(keeper, 60_000)).toEqual([`hub2mqtt/home/state,${TOPIC}`])
    upkeep.stop()
    expect(clock.pending).toBe(0)
  })

  test('is restored every ten minutes, until that bridge stops', async () => {
    const keeper = keeping()
    keeper.upkeep.touched(TOPIC, deviceOf('other'))
    await fight(keeper, 60_000)
    expect(await fight(keeper, 3 * 600_000)).toEqual([TOPIC, TOPIC, TOPIC])
    await keeper.clock.advance(600_000)
    expect(keeper.done.at(-1)).toBe(TOPIC)
    await keeper.clock.advance(11 * 60_000)
    expect(keeper.upkeep.yields).toBe(false)
    keeper.upkeep.stop()
  })

  test('is kept by the bridge whose devices were restored only now and then', async () => {
    const { upkeep, clock, done } = keeping()
    for (let i = 0; i < 10; i += 1) {
      upkeep.touched(TOPIC, deviceOf('other'))
      await clock.advance(600_000)
    }
    expect(done).toEqual(Array.from({ length: 10 }, () => TOPIC))
    expect(upkeep.yields).toBe(false)
  })

  test.each([
    ['an older message of this bridge', deviceOf('hub2mqtt')],
    ['no device', 'forged'],
  ])('is not meant by %s, which is repaired each time', async (_, payload) => {
    const { upkeep, clock, done } = keeping()
    for (let i = 0; i < 10; i += 1) {
      upkeep.touched(TOPIC, payload)
      await clock.advance(5_000)
    }
    expect(done).toHaveLength(10)
    expect(upkeep.yields).toBe(false)
  })
})

test.concurrent('everything is read again after more changes than are remembered', async () => {
  const { upkeep, clock, done } = keeping()
  for (let i = 0; i < 20_000; i += 1) upkeep.touched(`hub2mqtt/home/app/${i}`, '{}')
  await clock.advance(500)
  expect(done).toEqual(['everything'])
})

test.concurrent('a device that Home Assistant cleared is not repaired like one that another client forged', async () => {
  const { upkeep, clock, done } = keeping()
  const device = 'homeassistant/device/hub2mqtt--H1--x/config'
  upkeep.touched(device, '')
  expect(done).toEqual([`put back ${device}`])
  await clock.advance(10_000)
  upkeep.touched(device, '{}')
  await clock.advance(500)
  expect(done.slice(1)).toEqual([device])
})

test.concurrent('messages of other programs are not repaired', async () => {
  const { upkeep, clock, done } = keeping()
  for (const topic of ['hub2mqtt/kitchen/state', 'hub2mqtt/bridge/other/state', 'homeassistant/device/lamp/config']) {
    upkeep.touched(topic, '{}')
    upkeep.touched(topic, '')
  }
  await clock.advance(10_000)
  expect(done).toEqual([])
})
