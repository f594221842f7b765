import { describe, expect, test } from 'vitest'
import { createDiscoveryTopics, type Form, objectIdOf } from '../../src/contract/discovery.ts'
import type { Device } from '../../src/home-assistant/device.ts'
import { Publisher } from '../../src/home-assistant/publisher.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { FakeLink } from './support/fake-link.ts'

const topics = createDiscoveryTopics('ha')
const idOf = (app: string) => objectIdOf({ kind: 'app', hubId: 'h', app })

/** Creates a device. `hidden`: the keys of the components that are off by default. */
function device(
  app: string,
  platforms: Readonly<Record<string, 'switch' | 'sensor' | 'number'>>,
  hidden: readonly string[] = [],
): Device {
  const objectId = idOf(app)
  const entries = Object.entries(platforms).map(([key, platform]) => {
    const component = { platform, unique_id: key, state_topic: `state/${app}` }
    const off = hidden.includes(key) ? { enabled_by_default: false } : {}
    return [key, { component: { ...component, ...off }, availability: [] }] as const
  })
  return {
    objectId,
    info: { identifiers: [objectId], name: app },
    origin: { name: 'hub2mqtt', sw_version: '1', support_url: 'https://example.org' },
    availability: [],
    components: new Map(entries),
  }
}

const want = (publisher: Publisher, wanted: Device) => publisher.want(wanted.objectId, () => wanted)

function start(form: Form = 'device', link = new FakeLink(), rate = 20, isBusy = () => false) {
  const clock = new FakeClock()
  const publisher = new Publisher({ link, clock, topics, form, rate, isBusy })
  publisher.readRetained()
  return { clock, link, publisher }
}

async function published(devices: readonly Device[], form?: Form) {
  const started = start(form)
  for (const one of devices) want(started.publisher, one)
  await started.clock.advance(5000)
  started.link.take()
  return started
}

const componentsOf = (told: string | undefined) => JSON.parse(told?.split(' ').slice(2).join(' ') ?? '{}').components

describe('discovery', () => {
  test.for([
    [20, 84],
    [100, 164],
  ])('is published immediately for 64 devices, then for %i per second, in their order', async ([rate = 0, count]) => {
    const { clock, link, publisher } = start('device', undefined, rate)
    for (let i = 0; i < 400; i += 1) want(publisher, device(`app${i}`, { a: 'switch' }))
    await clock.advance(1)
    expect(link.told).toHaveLength(64)
    await clock.advance(1000)
    expect(link.told).toHaveLength(count ?? 0)
    await clock.advance(20_000)
    expect(link.told).toHaveLength(400)
    expect(link.told[399]).toContain(idOf('app399'))
  })

  test('is rate-limited from the first device on after Home Assistant has restarted', async () => {
    const { clock, link, publisher } = start()
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(5000)
    publisher.publishAgain()
    for (let i = 0; i < 100; i += 1) want(publisher, device(`app${i}`, { a: 'switch' }))
    await clock.advance(6000)
    link.take()
    for (let i = 0; i < 100; i += 1) want(publisher, device(`app${i}`, { b: 'switch' }))
    await clock.advance(999)
    expect(link.told).toHaveLength(20)
  })

  test('is published without a pause if the rate is 0, also after Home Assistant has restarted', async () => {
    const { clock, link, publisher } = start('device', undefined, 0)
    const ids = Array.from({ length: 2000 }, (_, i) => `app${i}`)
    for (const id of ids) want(publisher, device(id, { a: 'switch' }))
    await clock.advance(1)
    expect(link.take()).toHaveLength(2000)
    await clock.advance(5000)
    publisher.publishAgain()
    await clock.advance(1)
    expect(link.told.filter((told) => told.startsWith(`again ${topics.prefix}/`))).toHaveLength(2000)
  })

  test('waits for the broker if the rate is 0, so that not everything is in the queue at the same time', async () => {
    const { clock, link, publisher } = start('device', undefined, 0)
    link.queued = 257
    for (let i = 0; i < 200; i += 1) want(publisher, device(`app${i}`, { a: 'switch' }))
    await clock.advance(1000)
    expect(link.told).toEqual([])
    link.queued = 0
    await clock.advance(20)
    expect(link.told).toHaveLength(200)
  })

  test('follows more important messages if the rate is 0', async () => {
    let busy = true
    const { clock, link, publisher } = start('device', undefined, 0, () => busy)
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(1000)
    expect(link.told).toEqual([])
    busy = false
    await clock.advance(20)
    expect(link.told).toHaveLength(1)
  })

  test('gives other work its turn if the rate is 0', async () => {
    const { clock, link, publisher } = start('device', undefined, 0)
    for (let i = 0; i < 2000; i += 1) want(publisher, device(`app${i}`, { a: 'switch' }))
    let told = 0
    clock.after(0, () => {
      told = link.told.length
    })
    await clock.advance(1)
    expect(told).toBeLessThan(200)
  })

  test('is rendered again, with the current device, if the broker needs it again', async () => {
    const { clock, link, publisher } = start()
    for (const app of ['x', 'y']) want(publisher, device(app, { a: 'switch' }))
    await clock.advance(1)
    want(publisher, device('x', { b: 'sensor' }))
    publisher.withdraw(idOf('y'), 1000)
    const again = (app: string) => link.recalls.get(topics.device(idOf(app)))?.(topics.device(idOf(app)))
    expect(JSON.parse(again('x') ?? '{}').components).toEqual({ b: expect.objectContaining({ platform: 'sensor' }) })
    expect(again('y')).toBeUndefined()
  })

  test('waits until the retained messages of the broker are known', async () => {
    const clock = new FakeClock()
    const link = new FakeLink()
    const publisher = new Publisher({ link, clock, topics, form: 'device', rate: 20 })
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(10_000)
    expect(link.told).toEqual([])
    publisher.readRetained()
    await clock.advance(100)
    expect(link.told).toHaveLength(1)
  })

  test('of one device is sent at most every two seconds, in its newest version', async () => {
    const { clock, link, publisher } = start()
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(100)
    for (const name of ['b', 'c', 'd']) want(publisher, device('x', { a: 'switch', [name]: 'sensor' }))
    await clock.advance(1800)
    expect(link.told).toHaveLength(1)
    await clock.advance(200)
    expect(Object.keys(componentsOf(link.told[1]))).toEqual(['a', 'd'])
  })

  test('names a removed component before it leaves it out', async () => {
    const { clock, link, publisher } = await published([device('x', { a: 'switch', b: 'sensor' })])
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(1000)
    expect(componentsOf(link.told[0])).toEqual({ a: expect.anything(), b: { platform: 'sensor' } })
    await clock.advance(5000)
    expect(componentsOf(link.told[1])).toEqual({ a: expect.anything() })
    expect(link.told).toHaveLength(2)
  })

  test('also names removed components of an earlier run, and components whose platform changes', async () => {
    const first = await published([device('x', { a: 'switch', b: 'sensor' })])
    const { clock, link, publisher } = start('device', first.link)
    want(publisher, device('x', { a: 'number' }))
    await clock.advance(5000)
    expect(componentsOf(link.told[0])).toEqual({ a: { platform: 'switch' }, b: { platform: 'sensor' } })
    expect(componentsOf(link.told[1])).toEqual({ a: expect.objectContaining({ platform: 'number', unique_id: 'a' }) })
  })

  test('never names components that are off by default: some versions would remove the whole device', async () => {
    const first = await published([device('x', { a: 'switch', b: 'sensor', c: 'sensor' }, ['b', 'c'])])
    want(first.publisher, device('x', { a: 'switch', b: 'sensor' }, ['b']))
    await first.clock.advance(5000)
    expect(first.link.take().map((told) => Object.keys(componentsOf(told)))).toEqual([['a', 'b']])
    const { clock, link, publisher } = start('device', first.link)
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(5000)
    expect(link.told.map((told) => componentsOf(told))).toEqual([{ a: expect.anything() }])
  })

  test('of a component that is off by default only since an update stays as it was, and is named when it is removed', async () => {
    const platforms = { a: 'switch', b: 'sensor', c: 'number' } as const
    const first = start()
    want(first.publisher, device('x', platforms))
    await first.clock.advance(5000)
    const before = componentsOf(first.link.take()[0])
    const second = start('device', first.link)
    want(second.publisher, device('x', { ...platforms, d: 'sensor' }, ['b', 'd']))
    await second.clock.advance(5000)
    const topic = topics.device(idOf('x'))
    const payload = second.link.held.get(topic)
    expect(JSON.parse(payload ?? '').components).toEqual({
      ...before,
      d: expect.objectContaining({ enabled_by_default: false }),
    })
    expect(second.link.recalls.get(topic)?.(topic)).toBe(payload)
    second.link.take()
    const third = start('device', second.link)
    want(third.publisher, device('x', { a: 'switch', d: 'sensor' }, ['d']))
    await third.clock.advance(1000)
    expect(componentsOf(third.link.told[0])).toMatchObject({ b: { platform: 'sensor' }, c: { platform: 'number' } })
    await third.clock.advance(5000)
    expect(Object.keys(componentsOf(third.link.told[1]))).toEqual(['a', 'd'])
    want(third.publisher, device('x', platforms, ['b']))
    await third.clock.advance(5000)
    expect(componentsOf(third.link.told[2]).b).toHaveProperty('enabled_by_default', false)
  })

  test('is not published again if the broker has it', async () => {
    const first = await published([device('x', { a: 'switch' })])
    const { clock, link, publisher } = start('device', first.link)
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(10_000)
    expect(link.told).toEqual([])
  })

  test('moves from one format to the other without losing the entities', async () => {
    const first = await published([device('x', { a: 'switch', b: 'sensor' })], 'component')
    const { clock, link, publisher } = start('device', first.link)
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(1000)
    const old = ['a', 'b'].map((key) => topics.component(key === 'a' ? 'switch' : 'sensor', idOf('x'), key))
    expect(link.take()).toEqual([
      ...old.map((topic) => `send ${topic} {"migrate_discovery":true}`),
      expect.stringMatching(`^hold ${topics.device(idOf('x'))} `),
    ])
    await clock.advance(5000)
    expect(link.take()).toEqual(old.map((topic) => `clear ${topic}`))
  })

  test('of a removed component is cleared', async () => {
    const { clock, link, publisher } = await published([device('x', { a: 'switch', b: 'sensor' })], 'component')
    want(publisher, device('x', { a: 'switch' }))
    await clock.advance(100)
    expect(link.take()).toEqual([`clear ${topics.component('sensor', idOf('x'), 'b')}`])
  })

  test('of a removed device is cleared, unless it returns in time', async () => {
    const { clock, link, publisher } = await published([device('x', { a: 'switch' }), device('y', { a: 'switch' })])
    publisher.withdraw(idOf('x'))
    publisher.withdraw(idOf('y'), 10_000)
    await clock.advance(9000)
    expect(link.take()).toEqual([`clear ${topics.device(idOf('x'))}`])
    want(publisher, device('y', { a: 'switch' }))
    await clock.advance(20_000)
    expect(link.take()).toEqual([])
  })

  test('of removed devices is cleared at the limited rate too', async () => {
    const devices = Array.from({ length: 100 }, (_, i) => device(`app${i}`, { a: 'switch' }))
    const { clock, link, publisher } = await published(devices)
    for (const { objectId } of devices) publisher.withdraw(objectId)
    await clock.advance(999)
    expect(link.told).toHaveLength(20)
  })

  test('of a hub that another bridge takes over before the first connection stays on the broker', async () => {
    const [clock, link, wanted] = [new FakeClock(), new FakeLink(), device('x', { a: 'switch' })]
    const publisher = new Publisher({ link, clock, topics, form: 'device', rate: 20 })
    link.held.set(topics.device(wanted.objectId), '{}')
    want(publisher, wanted)
    publisher.releaseAll(objectIdOf({ kind: 'hub', hubId: 'h' }))
    publisher.readRetained()
    await clock.advance(60_000)
    expect(link.take().filter((call) => !call.startsWith('release'))).toEqual([])
  })

  test('is restored once when another client clears its topics, and not when the publisher cleared them', async () => {
    const { clock, link, publisher } = await published(
      [device('x', { a: 'switch', b: 'sensor' }), device('y', { a: 'switch' })],
      'component',
    )
    for (const [key, platform] of [
      ['a', 'switch'],
      ['b', 'sensor'],
    ] as const) {
      publisher.touched(topics.component(platform, idOf('x'), key), '')
      await clock.advance(1000)
    }
    publisher.withdraw(idOf('y'))
    await clock.advance(100)
    publisher.touched(topics.component('switch', idOf('y'), 'a'), '')
    publisher.touched(topics.component('switch', idOf('x'), 'a'), '{"changed":1}')
    publisher.touched('ha/device/other/config', '')
    await clock.advance(20_000)
    expect(link.take().sort()).toEqual([
      `again ${topics.component('sensor', idOf('x'), 'b')}`,
      `again ${topics.component('switch', idOf('x'), 'a')}`,
      `clear ${topics.component('switch', idOf('y'), 'a')}`,
    ])
  })

  test("is published again with the states after Home Assistant's birth message, at the limited rate", async () => {
    const { clock, link, publisher } = start()
    for (const name of ['x', 'y', 'z']) want(publisher, device(name, { a: 'switch', b: 'sensor' }))
    await clock.advance(5000)
    link.take()
    publisher.publishAgain()
    await clock.advance(60)
    expect(link.take()).toEqual([
      ...[`again ${topics.device(idOf('x'))}`, 'again state/x'],
      ...[`again ${topics.device(idOf('y'))}`, 'again state/y'],
    ])
    await clock.advance(5000)
    expect(link.take()).toHaveLength(2)
  })

  test('omits states that have been published again already', async () => {
    const { clock, link, publisher } = start()
    for (const name of ['x', 'y']) want(publisher, device(name, { a: 'switch' }))
    await clock.advance(5000)
    link.take()
    publisher.publishAgain(new Set(['state/x']))
    await clock.advance(5000)
    expect(link.take()).toEqual([
      ...[`again ${topics.device(idOf('x'))}`, `again ${topics.device(idOf('y'))}`, 'again state/y'],
    ])
  })

  test('stops when the bridge does', async () => {
    const { clock, link, publisher } = start()
    want(publisher, device('x', { a: 'switch' }))
    publisher.stop()
    await clock.advance(10_000)
    expect(link.told).toEqual([])
    expect(clock.pending).toBe(0)
  })
})
