import { describe, expect } from 'vitest'
import { Mosquitto } from '../support/brokers.ts'
import { Observer, retainedOn } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { RawBroker } from './raw-broker.ts'
import { portOf, settled, startAedes, startLink, test, unclaimedBy, withoutMosquitto } from './support.ts'

describe.skipIf(withoutMosquitto)('what Mosquitto holds', { concurrent: true }, () => {
  test('a bridge that starts again sends nothing that is there already', async ({ broker }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/app/+' })
    const fill = (link: { hold(topic: string, payload: string): void }) => {
      for (let i = 0; i < 500; i += 1) link.hold(`b/app/${i}`, JSON.stringify({ id: i, name: 'Büro ☀' }))
    }
    await using first = startLink({ url: broker.url })
    fill(first.link)
    await settled(first)
    await first.link.close({ deadlineMs: 2000 })
    const before = observer.seen.length
    expect(before).toBe(500)

    // Wanted before the read-back, during it, and after it.
    await using second = startLink({ url: broker.url, onConnected: fill })
    fill(second.link)
    await settled(second)
    await using third = startLink({ url: broker.url, clientId: 'other' })
    await settled(third)
    fill(third.link)
    expect(third.link.status()).toMatchObject({ queued: 0, unacknowledged: 0, publishes: 1 })
    expect(second.link.status().publishes).toBe(1)
    expect(observer.seen.length).toBe(before)
  })

  test('a bridge that starts again goes on where there is more than Mosquitto queues for it', async ({ broker }) => {
    const fill = (link: { hold(topic: string, payload: string): void }) => {
      for (let i = 0; i < 6_000; i += 1) link.hold(`b/app/${i}`, String(i).padEnd(7_000))
    }
    await using first = startLink({ url: broker.url })
    fill(first.link)
    await settled(first)
    await first.link.close({ deadlineMs: 2000 })
    await using second = startLink({ url: broker.url })
    fill(second.link)
    await settled(second)
    expect(second.link.status().reconnects).toBe(0)
    await using observer = await Observer.on(broker.port, { filter: 'b/state' })
    await until('online', () => observer.last('b/state') === 'online')
  })

  test.each(['5', '3.1.1'] as const)(
    'everything is sent again under MQTT %s when the broker forgot it',
    async (protocol) => {
      await using broker = await Mosquitto.start()
      await using bridge = startLink({ url: broker.url, protocol })
      for (let i = 0; i < 100; i += 1) bridge.link.hold(`b/app/${i}`, `state ${i}`)
      await settled(bridge)
      await broker.stop()
      bridge.link.hold('b/app/7', 'changed meanwhile')
      bridge.link.hold('b/app/8', null)
      await broker.run()
      await settled(bridge, 2)
      const held = await retainedOn(broker.port)
      expect(held.size).toBe(100)
      expect(held.get('b/app/7')).toBe('changed meanwhile')
      expect(held.has('b/app/8')).toBe(false)
      expect(held.get('b/state')).toBe('online')
    },
  )

  test('only the difference is sent when the broker remembers', async () => {
    await using broker = await Mosquitto.start({ persistent: true })
    await using bridge = startLink({ url: broker.url })
    for (let i = 0; i < 100; i += 1) bridge.link.hold(`b/app/${i}`, `state ${i}`)
    const { publishes = 0 } = (await settled(bridge)) ?? {}
    await broker.stop()
    // What is held before that would be sent into the old connection, and counted.
    await until('the loss', () => bridge.link.status().reason)
    bridge.link.hold('b/app/7', 'changed meanwhile')
    bridge.link.hold('b/app/8', null)
    bridge.link.hold('b/app/9', 'there and')
    bridge.link.hold('b/app/9', 'state 9')
    await broker.run()
    await settled(bridge, 2)
    const held = await retainedOn(broker.port)
    expect(held.get('b/app/7')).toBe('changed meanwhile')
    expect(held.has('b/app/8')).toBe(false)
    expect(bridge.link.status().publishes - publishes).toBe(3)
  })

  test('of 50,000 updates of 10 topics while offline only the newest arrive', async ({ broker, proxy }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/app/+' })
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await settled(bridge)
    proxy.refuse(true)
    proxy.reset()
    await until('the loss', () => bridge.link.status().reason)
    for (let i = 0; i < 50_000; i += 1) bridge.link.hold(`b/app/${i % 10}`, String(i))
    expect(bridge.link.status().queued).toBe(10)
    proxy.refuse(false)
    await until('all ten', () => observer.seen.length >= 10)
    await settled(bridge)
    expect(observer.seen.map(({ text }) => Number(text))).toEqual([...Array(10).keys()].map((i) => 49_990 + i))
  })

  test('no more than the window is unacknowledged, and what comes meanwhile is sent in its newest form', async () => {
    await using broker = await Mosquitto.start()
    await using proxy = await TcpProxy.to(broker.port)
    await using observer = await Observer.on(broker.port, { filter: 'b/app/+' })
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}`, window: 8 })
    await settled(bridge)
    proxy.pause()
    for (let round = 0; round < 50; round += 1) {
      for (let i = 0; i < 40; i += 1) bridge.link.hold(`b/app/${i}`, `round ${round}`)
    }
    expect(bridge.link.status()).toMatchObject({ unacknowledged: 8, queued: 32 })
    proxy.resume()
    await settled(bridge)
    // The eight under way were first written in round 0.
    await until('all', () => observer.seen.length === 48)
    for (let i = 0; i < 40; i += 1) expect(observer.last(`b/app/${i}`)).toBe('round 49')
  })

  test('a broker that takes fewer at a time is obeyed', async () => {
    await using broker = await Mosquitto.start({ config: ['max_inflight_messages 3'] })
    await using proxy = await TcpProxy.to(broker.port)
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await settled(bridge)
    proxy.pause()
    for (let i = 0; i < 40; i += 1) bridge.link.hold(`b/app/${i}`, 'x')
    expect(bridge.link.status().unacknowledged).toBe(3)
    proxy.resume()
    await settled(bridge)
    expect((await retainedOn(broker.port)).size).toBe(41)
  })

  test('a sweep clears only what it is told, and the rest stays', async ({ broker, observer }) => {
    await observer.publish('b/app/ghost', '{"by":"us"}', { retain: true })
    await observer.publish('b/app/foreign', '{"by":"them"}', { retain: true })
    await observer.publish('other/app/ghost', '{"by":"us"}', { retain: true })
    let swept: number | undefined
    await using bridge = startLink({
      url: broker.url,
      onConnected: (link) => {
        link.hold('b/app/alive', '{"by":"us"}')
        expect(unclaimedBy(link)).toEqual(['b/app/foreign', 'b/app/ghost'])
        swept = link.sweep((_topic, payload) => payload.includes('us'))
      },
    })
    await settled(bridge)
    expect(swept).toBe(1)
    expect([...(await retainedOn(broker.port)).keys()].sort()).toEqual([
      'b/app/alive',
      'b/app/foreign',
      'b/state',
      'other/app/ghost',
    ])
    expect(bridge.unclaimed()).toEqual(['b/app/foreign'])
  })

  test('nothing is sent to clear what is not there', async ({ bridge }) => {
    bridge.link.hold('b/app/early', null)
    await settled(bridge)
    bridge.link.hold('b/app/late', null)
    expect(bridge.link.status()).toMatchObject({ publishes: 1, queued: 0, unacknowledged: 0 })
  })

  test('nothing is sent to clear what is not there, however much the broker holds elsewhere', async () => {
    await using broker = await Mosquitto.start()
    await using observer = await Observer.on(broker.port, { filter: 'b/#' })
    for (let i = 0; i < 1_000; i += 1) await observer.publish(`b/app/${i}`, 'theirs', { retain: true })
    for (let i = 0; i < 500; i += 1) await observer.publish(`b/guard/${i}`, 'ours', { retain: true })
    const heldFilters = ['b/app/+', 'b/guard/+', 'b/setting/+']
    await using bridge = startLink({ url: broker.url, heldFilters })
    await settled(bridge)
    for (let i = 500; i < 1_000; i += 1) bridge.link.hold(`b/guard/${i}`, null)
    for (let i = 0; i < 100; i += 1) bridge.link.hold(`b/setting/${i}`, null)
    for (const topic of ['b/guard/7', 'b/app/late', 'b/app/7']) bridge.link.hold(topic, null)
    await settled(bridge)
    const empty = observer.seen.filter(({ text }) => text === '').map(({ topic }) => topic)
    // That one may have been there: it is not known of more than the broker queues.
    expect(empty.sort()).toEqual(['b/app/7', 'b/app/late', 'b/guard/7'])
  })

  test('what may be there is cleared once, if the broker holds too much to know', async ({ broker, observer }) => {
    for (let i = 0; i < 1_000; i += 1) await observer.publish(`b/app/${i}`, 'theirs', { retain: true })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    for (let round = 0; round < 3; round += 1) {
      bridge.link.hold('b/app/late', null)
      await settled(bridge)
    }
    expect(observer.seen.filter(({ topic }) => topic === 'b/app/late')).toHaveLength(1)
  })

  test.each([
    // So many its queue for a client holds even if nobody reads.
    { topics: 850, atMost: 1 },
    // Of these it drops some, and the answer to the next subscription as well.
    { topics: 3000, atMost: 2500 },
  ])(
    '$topics topics of 12 KB come through, and what it tells of them is not sent twice',
    { timeout: 30_000 },
    async ({ topics, atMost }) => {
      await using broker = await Mosquitto.start()
      const text = 'x'.repeat(12_000)
      await using first = startLink({ url: broker.url })
      for (let i = 0; i < topics; i += 1) first.link.hold(`b/app/${i}`, text + i)
      await settled(first)
      await first.link.close({ deadlineMs: 2000 })
      await using second = startLink({ url: broker.url })
      for (let i = 0; i < topics; i += 1) second.link.hold(`b/app/${i}`, text + i)
      await settled(second)
      expect(second.link.status().publishes).toBeLessThanOrEqual(atMost)
      expect(second.link.status().reconnects).toBe(0)
    },
  )

  test('what is too large or no topic is named once and disturbs nothing else', async () => {
    await using broker = await Mosquitto.start({ config: ['max_packet_size 5000'] })
    await using bridge = startLink({ url: broker.url })
    bridge.link.hold('b/app/large', 'x'.repeat(5000))
    bridge.link.hold('b/app/+', 'wild')
    bridge.link.hold('b/app/fine', 'x'.repeat(4000))
    await settled(bridge)
    expect(bridge.link.status()).toMatchObject({ deniedTopics: 2, reconnects: 0 })
    bridge.link.hold('b/app/large', 'y'.repeat(5000))
    bridge.link.hold('b/app/large', 'small')
    bridge.link.send('b/event/#', 'wild')
    bridge.link.send('b/event', 'y'.repeat(5000))
    await settled(bridge)
    const held = await retainedOn(broker.port)
    expect([...held.keys()].sort()).toEqual(['b/app/fine', 'b/app/large', 'b/state'])
    expect(bridge.log.loud.filter((line) => line.includes('b/app/large'))).toHaveLength(1)
    expect(bridge.log.loud.filter((line) => line.includes('b/app/+'))).toHaveLength(1)
    expect(bridge.log.loud.filter((line) => line.includes('b/event'))).toHaveLength(2)
  })
})

describe.concurrent('a read-back', () => {
  test('asks once, however long the broker takes to send all that it holds', async () => {
    const topics = Array.from({ length: 12 }, (_, i) => `b/app/${i}`)
    const retained = (filter: string) => (filter === 'b/app/+' ? topics : [])
    await using broker = await RawBroker.start({ echoes: true, retained, retainedEveryMs: 150 })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    expect(broker.subscribed.filter((filter) => filter === 'b/app/+')).toHaveLength(1)
    expect(broker.published.filter((topic) => topic === 'b/probe').length).toBe(3)
    expect(bridge.unclaimed()).toEqual(topics.toSorted())
  })

  test('takes as long as messages come, but not longer than the limit without any', async () => {
    const retained = (filter: string) => (filter === 'b/app/+' ? ['b/app/1', 'b/app/2', 'b/app/3'] : [])
    await using broker = await RawBroker.start({ echoes: true, retained, retainedEveryMs: 150 })
    await using bridge = startLink({ url: broker.url, ackTimeoutMs: 300 })
    await settled(bridge)
    expect(broker.connects).toBe(1)
    await using silent = await RawBroker.start({
      echoes: true,
      suback: (filter) => (filter === 'b/app/+' ? undefined : 1),
    })
    await using other = startLink({ url: silent.url, ackTimeoutMs: 300 })
    await until('another connection', () => silent.connects > 1)
    expect(other.log.loud).toContainEqual(expect.stringContaining('SUBACK'))
  })

  test('takes what comes for the answer where the broker has lost that', async () => {
    const retained = (filter: string) => (filter === 'b/app/+' ? ['b/app/1', 'b/app/2'] : [])
    const suback = (filter: string) => (filter === 'b/app/+' ? undefined : 1)
    await using broker = await RawBroker.start({ echoes: true, retained, suback })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    expect(broker.subscribed.filter((filter) => filter === 'b/app/+')).toHaveLength(1)
    expect(bridge.unclaimed()).toEqual(['b/app/1', 'b/app/2'])
  })

  test('asks again when nothing comes, as the answer may be lost', async () => {
    const asked = (broker: RawBroker) => broker.subscribed.filter((filter) => filter === 'b/app/+').length
    const suback = (filter: string) => (filter === 'b/app/+' && asked(broker) === 1 ? undefined : 1)
    await using broker: RawBroker = await RawBroker.start({ echoes: true, suback })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    expect(asked(broker)).toBe(2)
  })
})

describe.concurrent('what the embedded broker holds', () => {
  test('a reconnect reads it back and sends only the difference', async () => {
    await using broker = await startAedes()
    const port = portOf(broker.url)
    await using proxy = await TcpProxy.to(port)
    await using observer = await Observer.on(port, { filter: 'b/app/+' })
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    for (let i = 0; i < 300; i += 1) bridge.link.hold(`b/app/${i}`, `state ${i}`)
    await settled(bridge)
    await observer.publish('b/app/ghost', 'boo', { retain: true })
    proxy.reset()
    bridge.link.hold('b/app/7', 'changed meanwhile')
    await settled(bridge, 2)
    expect(bridge.unclaimed()).toEqual(['b/app/ghost'])
    await until('the change', () => observer.last('b/app/7') === 'changed meanwhile')
    expect(observer.seen).toHaveLength(302)
  })
})
