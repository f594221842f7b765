import { describe, expect, test } from 'vitest'
import { BROKERS, Mosquitto, mosquittoPath, startBroker } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { settled, startLink } from './support.ts'

/** Starts a Mosquitto without a queue limit. By default, Mosquitto queues only 1,000 messages for each subscriber. */
const patient = () => Mosquitto.start({ config: ['max_queued_messages 0'] })

describe.each(BROKERS)('with a connected broker (%s)', (kind) => {
  test('every one of 2,000 pings is answered', async () => {
    await using world = await World.start({ broker: kind === 'mosquitto' ? await patient() : kind })
    const { observer } = world
    const pings = Array.from({ length: 2_000 }, (_, i) =>
      observer.publish('hub2mqtt/bridge/cmd/ping', JSON.stringify({ transaction: i })),
    )
    await Promise.all(pings)
    const answers = () => observer.texts('hub2mqtt/bridge/result/ping')
    await until('the answers', () => answers().length >= 2_000, 30_000)
    const transactions = answers().map((text) => JSON.parse(text).transaction)
    expect(new Set(transactions).size).toBe(2_000)
    expect(answers()).toHaveLength(2_000)
  })

  test('each of 2,000 events arrives, in order', async () => {
    await using broker = await startBroker(kind)
    await using observer = await Observer.on(broker.port, { filter: 'b/event' })
    await using bridge = startLink({ url: broker.url })
    await settled(bridge)
    for (let i = 0; i < 2_000; i += 1) bridge.link.send('b/event', String(i))
    await until('the last event', () => observer.last('b/event') === '1999')
    expect(observer.seen.map(({ text }) => Number(text))).toEqual([...Array(2_000).keys()])
    expect(bridge.link.status().dropped).toBe(0)
  })
})

describe.skipIf(mosquittoPath === undefined)('a flood of commands from one client', () => {
  test('is answered, and delays neither another client nor events', { timeout: 110_000 }, async () => {
    await using broker = await patient()
    await using bridge = startLink({ url: broker.url })
    // Answer with a delay, as the bridge does.
    bridge.messages.push = (message) => {
      const result = message.topic.replace('cmd', 'result')
      queueMicrotask(() => bridge.link.send(result, message.payload.toString(), { isAnswer: true }))
      return 1
    }
    await settled(bridge)
    await using flooder = await Observer.on(broker.port, { filter: 'b/flood/result/x' })
    await using bystander = await Observer.on(broker.port, { filter: 'b/calm/#' })
    const flood = Promise.all(Array.from({ length: 10_000 }, (_, i) => flooder.publish('b/flood/cmd/x', String(i))))
    await until('the flood', () => flooder.seen.length > 100, 60_000)
    await bystander.publish('b/calm/cmd/x', 'hello')
    await until('the bystander’s answer', () => bystander.last('b/calm/result/x') === 'hello', 60_000)
    bridge.link.send('b/calm/event', 'happened')
    await until('the event', () => bystander.last('b/calm/event') === 'happened', 60_000)
    await flood
    await until('every answer', () => flooder.seen.length >= 10_000, 60_000)
    expect(flooder.seen.map(({ text }) => Number(text))).toEqual([...Array(10_000).keys()])
    expect(bridge.link.status().dropped).toBe(0)
  })
})
