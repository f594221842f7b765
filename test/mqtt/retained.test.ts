import { describe, expect } from 'vitest'
import { Observer, retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { RawBroker } from './raw-broker.ts'
import { settled, startLink, test, withoutMosquitto } from './support.ts'

describe.skipIf(withoutMosquitto)('what Mosquitto holds', { concurrent: true }, () => {
  test.for(['5', '3.1.1'] as const)(
    'everything is sent again under MQTT %s when the broker forgot it',
    async (protocol, { broker }) => {
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

  test('nothing is sent to clear topics that are empty, however much the broker holds elsewhere', async ({
    broker,
  }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/#' })
    for (let i = 0; i < 1_000; i += 1) await observer.publish(`b/app/${i}`, 'theirs', { retain: true })
    for (let i = 0; i < 500; i += 1) await observer.publish(`b/guard/${i}`, 'ours', { retain: true })
    const retainedFilters = ['b/app/+', 'b/guard/+', 'b/setting/+']
    await using bridge = startLink({ url: broker.url, retainedFilters })
    await settled(bridge)
    for (let i = 500; i < 1_000; i += 1) bridge.link.hold(`b/guard/${i}`, null)
    for (let i = 0; i < 100; i += 1) bridge.link.hold(`b/setting/${i}`, null)
    for (const topic of ['b/guard/7', 'b/app/late', 'b/app/7']) bridge.link.hold(topic, null)
    await settled(bridge)
    // When the observer receives this message, it has received all earlier messages.
    await observer.publish('b/end', 'x')
    await until('the end', () => observer.last('b/end') === 'x')
    const empty = observer.seen.filter(({ text }) => text === '').map(({ topic }) => topic)
    // The link also clears `b/app/late`, which may be retained, because the broker dropped messages beyond its queue.
    expect(empty.sort()).toEqual(['b/app/7', 'b/app/late', 'b/guard/7'])
  })

  test.for([
    // Mosquitto queues this many messages for a client that does not read, and drops none.
    { topics: 850, atMost: 1 },
    // Mosquitto drops some messages, and the answer to the next subscription.
    { topics: 2000, atMost: 1500 },
  ])(
    '$topics topics of 12 KB arrive, and those that are read back are not sent twice',
    { timeout: 30_000 },
    async ({ topics, atMost }, { broker }) => {
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
})

describe.concurrent('a read-back', () => {
  test('subscribes once and lasts as long as messages arrive, and ends when none arrives within the limit', async () => {
    const topics = Array.from({ length: 5 }, (_, i) => `b/app/${i}`)
    const retained = (filter: string) => (filter === 'b/app/+' ? topics : [])
    await using broker = await RawBroker.start({ echoes: true, retained, retainedEveryMs: 150 })
    await using bridge = startLink({ url: broker.url, ackTimeoutMs: 300 })
    await settled(bridge)
    expect(broker.connects).toBe(1)
    expect(broker.subscribed.filter((filter) => filter === 'b/app/+')).toHaveLength(1)
    expect(broker.published.filter((topic) => topic === 'b/probe').length).toBe(3)
    expect(bridge.unowned()).toEqual(topics)
    await using silent = await RawBroker.start({
      echoes: true,
      suback: (filter) => (filter === 'b/app/+' ? undefined : 1),
    })
    await using other = startLink({ url: silent.url, ackTimeoutMs: 300 })
    await until('another connection', () => silent.connects > 1)
    expect(other.log.loud).toContainEqual(expect.stringContaining('SUBACK'))
  })

  test('ends with the messages that arrive if the broker has lost the answer', async () => {
    const retained = (filter: string) => (filter === 'b/app/+' ? ['b/app/1', 'b/app/2'] : [])
    const suback = (filter: string) => (filter === 'b/app/+' ? undefined : 1)
    await using broker = await RawBroker.start({ echoes: true, retained, suback })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    expect(broker.subscribed.filter((filter) => filter === 'b/app/+')).toHaveLength(1)
    expect(bridge.unowned()).toEqual(['b/app/1', 'b/app/2'])
  })

  test('is repeated when nothing arrives, because the answer may be lost', async () => {
    const asked = (broker: RawBroker) => broker.subscribed.filter((filter) => filter === 'b/app/+').length
    const suback = (filter: string) => (filter === 'b/app/+' && asked(broker) === 1 ? undefined : 1)
    await using broker: RawBroker = await RawBroker.start({ echoes: true, suback })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    expect(asked(broker)).toBe(2)
  })
})
