import { describe, expect, test } from 'vitest'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { RawBroker } from './raw-broker.ts'
import { settled, startAedes, startLink } from './support.ts'

describe('a broker that lacks what the bridge needs', () => {
  // `connack` is a reason code that refuses the connection.
  test.each([
    ['retained messages', { properties: { retainAvailable: false } }],
    ['QoS 1', { properties: { maximumQoS: 0 } }],
    ['subscriptions with wildcards', { properties: { wildcardSubscriptionAvailable: false } }],
    ['retained messages', { connack: 0x9a }],
    ['QoS 1', { connack: 0x9b }],
  ])('is named in the log with the missing feature: %s %j', async (lack, options) => {
    await using broker = await RawBroker.start(options)
    const clock = new FakeClock()
    await using bridge = startLink({ url: broker.url, clock })
    await until('the wait', () => clock.waits.includes(60_000))
    expect(bridge.link.status()).toMatchObject({ state: 'waiting', reason: 'unsuitable', publishes: 0 })
    expect(bridge.log.loud).toEqual([expect.stringContaining(`lacks ${lack}`)])
    expect(bridge.log.lines.find(({ level }) => level === 'error')).toMatchObject({ reason: 'unsuitable' })
    await clock.advance(60_000)
    await until('another try', () => broker.connects === 2)
    expect(bridge.log.loud).toHaveLength(1)
  })

  test('and refuses wildcards only at a subscription is reported with the filters', async () => {
    await using broker = await RawBroker.start({ suback: (filter) => (/[+#]/.test(filter) ? 0xa2 : 1) })
    await using bridge = startLink({ url: broker.url, probeTimeoutMs: 50 })
    await settled(bridge)
    expect(bridge.link.status().deniedFilters).toEqual(['b/+/cmd/+'])
    expect(bridge.log.loud.filter((line) => line.includes('b/+/cmd/+'))).toHaveLength(1)
  })
})

test('a broker that accepts one message at a time gets the second one only after it has acknowledged the first', async () => {
  await using broker = await RawBroker.start({ properties: { receiveMaximum: 1 }, echoes: true, ackAfterMs: 5 })
  await using bridge = startLink({ url: broker.url, retainedFilters: ['b/app/+', 'b/state', 'b/x/+', 'b/y/+'] })
  for (let i = 0; i < 20; i += 1) bridge.link.hold(`b/app/${i}`, 'here')
  for (let i = 0; i < 20; i += 1) bridge.link.send('b/event', String(i))
  await settled(bridge)
  expect(broker.mostUnacknowledged).toBe(1)
  expect(bridge.link.status()).toMatchObject({ probe: 'ok', reconnects: 0 })
  expect(broker.published.filter((topic) => topic === 'b/event')).toHaveLength(20)
})

test('a link is busy while it is connected and more than 1,000 messages wait', async () => {
  await using broker = await startAedes()
  await using bridge = startLink({ url: broker.url })
  const hold = (text: string) => {
    for (let i = 0; i < 1100; i += 1) bridge.link.hold(`b/app/${i}`, text)
  }
  hold('before the connection')
  expect(bridge.link.isBusy).toBe(false)
  await settled(bridge)
  bridge.link.setWriting(false)
  hold('on standby')
  expect(bridge.link.isBusy).toBe(false)
  bridge.link.setWriting(true)
  expect(bridge.link.isBusy).toBe(true)
  await settled(bridge)
  expect(bridge.link.isBusy).toBe(false)
})
