import { describe, expect, test } from 'vitest'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { settled, startLink } from './support.ts'

/** Starts a Mosquitto without a queue limit. By default, Mosquitto queues only 1,000 messages for each subscriber. */
const patient = () => Mosquitto.start({ config: ['max_queued_messages 0'] })

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
    const flood = Promise.all(Array.from({ length: 4_000 }, (_, i) => flooder.publish('b/flood/cmd/x', String(i))))
    await until('the flood', () => flooder.seen.length > 100, 60_000)
    await bystander.publish('b/calm/cmd/x', 'hello')
    await until('the bystander’s answer', () => bystander.last('b/calm/result/x') === 'hello', 60_000)
    bridge.link.send('b/calm/event', 'happened')
    await until('the event', () => bystander.last('b/calm/event') === 'happened', 60_000)
    await flood
    await until('every answer', () => flooder.seen.length >= 4_000, 60_000)
    expect(flooder.seen.map(({ text }) => Number(text))).toEqual([...Array(4_000).keys()])
    expect(bridge.link.status().dropped).toBe(0)
  })
})
