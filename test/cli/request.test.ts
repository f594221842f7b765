import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { request } from '../../src/cli/call.ts'
import type { BrokerOptions } from '../../src/mqtt/types.ts'
import { RawBroker } from '../mqtt/raw-broker.ts'
import { startAedes, withoutMosquitto } from '../mqtt/support.ts'
import { Mosquitto } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Observer } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Under MQTT 5, the answer has the topic `reply/1`. Under MQTT 3.1.1, it has the topic `reply` and contains a mark. */
const ask = (broker: BrokerOptions, clock: Clock = systemClock) =>
  request(
    {
      broker,
      mark: '1',
      topic: 'service/ask',
      timeoutMs: 10_000,
      exchange: {
        '5': { payload: 'ask', answerTopic: 'reply/1', readAnswer: (text) => text },
        '3.1.1': {
          payload: 'ask 1',
          answerTopic: 'reply',
          readAnswer: (text) => (text.startsWith('1 ') ? text : undefined),
        },
      },
    },
    clock,
  )

describe.skipIf(withoutMosquitto)('a request through Mosquitto', () => {
  test('is sent under MQTT 5 with a response topic, correlation data and an expiry', async () => {
    await using broker = await Mosquitto.start()
    await using service = await Observer.on(broker.port, { protocol: '5', filter: 'service/ask' })
    const asking = ask({ urls: [broker.url] })
    const { text, retain, packet } = await until('the request', () => service.seen[0])
    expect({ text, retain }).toEqual({ text: 'ask', retain: false })
    expect(packet.properties).toMatchObject({ responseTopic: 'reply/1', correlationData: Buffer.from('1') })
    expect(packet.properties?.messageExpiryInterval).toBeGreaterThan(5)
    await service.publish('reply/1', 'here')
    expect(await asking).toBe('here')
  })

  test('reports a publish that the broker denies', async () => {
    const acl = ['user me', 'topic read #', 'user service', 'topic readwrite #']
    await using broker = await Mosquitto.start({ users: { me: 'a', service: 'b' }, acl })
    const asking = ask({ urls: [broker.url], username: 'me', password: 'a' })
    await expect(asking).rejects.toMatchObject({
      code: 'publish_denied',
      message: 'the broker denies the publish to service/ask',
    })
  })

  test('fails at its deadline when the broker hangs, and closes its connection', async () => {
    await using broker = await Mosquitto.start()
    await using proxy = await TcpProxy.to(broker.port)
    proxy.pause()
    const clock = new FakeClock()
    const asking = expect(ask({ urls: [`mqtt://127.0.0.1:${proxy.port}`] }, clock)).rejects.toMatchObject({
      code: 'timeout',
      message: 'no answer within 10000 ms',
    })
    await until('the connection', () => proxy.accepted === 1)
    await clock.advance(10_000)
    await asking
    proxy.resume()
    await until('the socket to close', () => proxy.open === 0)
  })
})

describe('a request through the embedded broker', () => {
  test('falls back to MQTT 3.1.1 and accepts only its own answer', async () => {
    await using broker = await startAedes()
    await using service = await Observer.on(Number(new URL(broker.url).port), { filter: 'service/ask' })
    const asking = ask({ urls: [broker.url] })
    await until('the request', () => service.last('service/ask') === 'ask 1')
    await service.publish('reply', "2 somebody else's")
    await service.publish('reply', '1 here')
    expect(await asking).toBe('1 here')
  })

  test('uses only the requested version', async () => {
    await using broker = await startAedes()
    await expect(ask({ urls: [broker.url], protocol: '5' })).rejects.toMatchObject({
      code: 'no_connection',
      message: expect.stringContaining('(protocol)'),
    })
  })
})

describe('a request to a broker that refuses', () => {
  test('reports a denied subscription, and sends nothing', async () => {
    await using broker = await RawBroker.start({ suback: () => 135 })
    await expect(ask({ urls: [broker.url] })).rejects.toMatchObject({
      code: 'subscription_denied',
      message: 'the broker denies the subscription to reply/1',
    })
    expect(broker.published).toEqual([])
  })

  test('fails when the connection ends before the answer', async () => {
    await using broker = await RawBroker.start()
    const asking = expect(ask({ urls: [broker.url] })).rejects.toMatchObject({
      code: 'no_connection',
      message: expect.stringContaining('139'),
    })
    await until('the request', () => broker.published.includes('service/ask'))
    broker.disconnect(139)
    await asking
    expect(broker.connects).toBe(1)
  })
})
