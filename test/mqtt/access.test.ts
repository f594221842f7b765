import { describe, expect } from 'vitest'
import { Mosquitto } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { Observer, retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { RawBroker } from './raw-broker.ts'
import { settled, startLink, test, withoutMosquitto } from './support.ts'

const users = { bridge: 'right', reader: 'read' }
const reader = { username: 'reader', password: 'read' }
const login = { username: 'bridge', password: 'right' }
const acl = ['user bridge', 'topic readwrite b/#', 'topic deny b/app/secret', 'user reader', 'topic read #']

describe.skipIf(withoutMosquitto)('a broker that refuses', { concurrent: true }, () => {
  test('a wrong password is tried again once a minute, logged once, and never shown', async () => {
    await using broker = await Mosquitto.start({ users })
    const clock = new FakeClock()
    await using bridge = startLink({ url: broker.url, clock, username: 'bridge', password: 'wr0ng-s3cret' })
    for (let minute = 1; minute <= 3; minute += 1) {
      await until('the long wait', () => clock.waits.filter((ms) => ms === 60_000).length === minute)
      expect(bridge.link.status()).toMatchObject({ state: 'waiting', reason: 'unauthorized' })
      expect(bridge.attempts()).toBe(minute)
      await clock.advance(59_999)
      expect(bridge.attempts()).toBe(minute)
      await clock.advance(1)
    }
    expect(bridge.log.loud).toHaveLength(1)
    expect(bridge.log.loud[0]).toMatch(/user name or password/)
    expect(JSON.stringify(bridge.log.lines)).not.toContain('wr0ng-s3cret')
  })

  test('a changed password is read again and used immediately', async () => {
    await using broker = await Mosquitto.start({ users })
    let reads = 0
    const credentials = () => {
      reads += 1
      return Promise.resolve(login)
    }
    await using bridge = startLink({ url: broker.url, username: 'bridge', password: 'old', credentials })
    await settled(bridge)
    expect(reads).toBe(1)
    expect(bridge.log.loud).toEqual([])
  })

  test('credentials in the URL are used, decoded', async () => {
    await using broker = await Mosquitto.start({ users: { 'br@idge': 'r/ght' } })
    await using bridge = startLink({ url: `mqtt://br%40idge:r%2Fght@127.0.0.1:${broker.port}` })
    await settled(bridge)
  })

  test('a topic that the ACL denies is logged once and counted, and all others arrive', async () => {
    await using broker = await Mosquitto.start({ users, acl })
    await using observer = await Observer.on(broker.port, reader)
    await using bridge = startLink({ url: broker.url, ...login })
    bridge.link.hold('b/app/secret', 'x')
    bridge.link.hold('b/app/open', 'x')
    await settled(bridge)
    await until('online', () => observer.last('b/state') === 'online')
    expect(observer.last('b/app/open')).toBe('x')
    expect(bridge.link.status()).toMatchObject({ deniedTopics: 1, probe: 'ok', reconnects: 0 })
    bridge.link.hold('b/app/secret', 'y')
    await settled(bridge)
    expect(bridge.log.loud.filter((line) => line.includes('b/app/secret'))).toHaveLength(1)
  })

  test('a denied state topic counts as a denied topic until a connection on which it is accepted', async () => {
    await using broker = await Mosquitto.start({ users, acl: ['user bridge', 'topic readwrite b/app/#'] })
    await using bridge = startLink({ url: broker.url, ...login })
    await settled(bridge)
    expect(bridge.link.status()).toMatchObject({ state: 'connected', deniedTopics: 1 })
    await broker.stop()
    await broker.configure({ users, acl })
    await broker.run()
    await until('the state topic', () => bridge.link.status().deniedTopics === 0)
  })

  test.each(['5', '3.1.1'] as const)(
    'a prefix that may not be written is logged once, and the bridge continues (MQTT %s)',
    async (protocol) => {
      const acl = ['user bridge', 'topic readwrite allowed/#', 'topic read b/#', 'user reader', 'topic readwrite #']
      await using broker = await Mosquitto.start({ users, acl })
      await using observer = await Observer.on(broker.port, reader)
      await using bridge = startLink({ url: broker.url, ...login, protocol, probeTimeoutMs: 600 })
      bridge.link.hold('allowed/x', 'x')
      await settled(bridge)
      await until('the allowed topic', () => observer.last('allowed/x') === 'x')
      expect(bridge.link.status()).toMatchObject({ state: 'connected', probe: 'denied' })
      expect(bridge.log.loud.filter((line) => line.includes('b/probe'))).toHaveLength(1)
      await observer.publish('b/x/cmd/one', '')
      await until('a command', () => bridge.messages.length === 1)
    },
  )

  test('a topic and then closes the connection, as Mosquitto 2.0.11 can, gets all others, and that one when it is permitted', async () => {
    const acl = ['user bridge', 'topic readwrite b/#', 'topic deny b/app/2', 'user reader', 'topic readwrite #']
    await using broker = await Mosquitto.start({ users, acl, config: ['max_queued_messages 0'] })
    const clock = new JumpClock()
    await using bridge = startLink({ url: broker.url, ...login, clock })
    for (let i = 0; i < 5; i += 1) bridge.link.hold(`b/app/${i}`, 'x')
    await until('the others', () => bridge.link.status().deniedTopics === 1, 40_000)
    await settled(bridge)
    for (let i = 0; i < 50; i += 1) bridge.link.send('b/event', String(i))
    await settled(bridge)
    expect(await retainedOn(broker.port, reader)).toEqual(
      new Map([0, 1, 3, 4].map((i) => [`b/app/${i}`, 'x'])).set('b/state', 'online'),
    )
    await broker.stop()
    await broker.configure({ users })
    await broker.run()
    const connections = bridge.connected()
    await until('the broker', () => bridge.connected() > connections)
    clock.jump(5_000)
    await until('the topic', () => bridge.link.status().deniedTopics === 0)
    await settled(bridge, bridge.connected())
    expect((await retainedOn(broker.port, reader)).get('b/app/2')).toBe('x')
  })
})

describe.concurrent('a broker that reports more than Mosquitto', () => {
  test('a denied command filter is logged once and reported, and the others work', async () => {
    await using broker = await RawBroker.start({ suback: (filter) => (filter.startsWith('secret') ? 135 : 1) })
    const subscriptions = ['secret/cmd', 'b/+/cmd/+']
    await using bridge = startLink({ url: broker.url, subscriptions, probeTimeoutMs: 50 })
    await settled(bridge)
    expect(bridge.link.status().deniedFilters).toEqual(['secret/cmd'])
    broker.disconnect(139)
    await settled(bridge, 2)
    expect(bridge.log.loud.filter((line) => line.includes('secret/cmd'))).toHaveLength(1)
  })

  test('a command filter that is granted later works without another connection, and does not wait for the others', async () => {
    const granted = new Set(['b/probe'])
    const suback = (filter: string) =>
      granted.has(filter) ? 1 : filter === 'slow/cmd' && granted.size > 1 ? undefined : 135
    await using broker = await RawBroker.start({ suback })
    const subscriptions = ['slow/cmd', 'b/+/cmd/+']
    await using bridge = startLink({ url: broker.url, subscriptions, probeTimeoutMs: 50 })
    await settled(bridge)
    expect(bridge.link.status().deniedFilters).toEqual(subscriptions)
    granted.add('b/+/cmd/+')
    await until('the grant of one', () => bridge.link.status().deniedFilters.length === 1)
    expect(bridge.statuses.at(-1)).toMatchObject({ state: 'connected', deniedFilters: ['slow/cmd'] })
    expect(bridge.log.lines.at(-1)).toMatchObject({ level: 'info', message: expect.stringContaining('b/+/cmd/+') })
    expect(broker.connects).toBe(1)
  })

  test('a stop during the read-back still publishes offline', async () => {
    await using broker = await RawBroker.start()
    await using bridge = startLink({ url: broker.url })
    await until('the question', () => broker.published.includes('b/probe'))
    await bridge.link.close({ deadlineMs: 1000 })
    expect(broker.published.at(-1)).toBe('b/state')
    expect(bridge.connected()).toBe(0)
  })

  test('`online` of another bridge during the read-back counts as found', async () => {
    await using broker = await RawBroker.start()
    const found: string[] = []
    const onReadBack = (topic: string, payload: string) => {
      found.push(`${topic} ${payload}`)
      return []
    }
    await using _bridge = startLink({ url: broker.url, onReadBack })
    await until('the question', () => broker.published.includes('b/probe'))
    broker.send('b/state', 'offline')
    broker.send('b/state', 'online')
    await until('the state', () => found.length > 0)
    expect(found).toEqual(['b/state online'])
  })

  test('a link whose session was taken over waits at least five seconds, and logs that', async () => {
    await using broker = await RawBroker.start()
    const clock = new FakeClock()
    await using bridge = startLink({ url: broker.url, clock })
    for (const ceiling of [5_000, 10_000, 20_000]) {
      await until('the connection', () => bridge.link.status().protocol === '5')
      broker.disconnect(142)
      await until('the takeover', () => bridge.link.status().state === 'waiting')
      const wait = clock.waits.at(-1) ?? 0
      expect(wait).toBeGreaterThanOrEqual(ceiling / 2)
      expect(wait).toBeLessThanOrEqual(ceiling)
      expect(bridge.link.status().reason).toBe('taken_over')
      await clock.advance(wait)
    }
    expect(bridge.log.loud).toEqual([expect.stringContaining('142')])
    const advice = bridge.log.lines.flatMap(({ remedy }) => remedy ?? [])
    expect(new Set(advice)).toEqual(new Set(['give each client its own mqtt.client_id']))
  })

  test('an overloaded broker is tried again after growing delays', async () => {
    await using broker = await RawBroker.start({ connack: 137 })
    const clock = new FakeClock()
    await using bridge = startLink({ url: broker.url, clock })
    for (const [i, ceiling] of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      await until('the wait', () => broker.connects === i + 1 && bridge.link.status().state === 'waiting')
      const wait = clock.waits.at(-1) ?? 0
      expect(wait).toBeGreaterThanOrEqual(ceiling / 10)
      expect(wait).toBeLessThanOrEqual(ceiling)
      await clock.advance(wait)
    }
    expect(bridge.log.loud).toHaveLength(1)
  })

  test('only the configured version is tried', async () => {
    await using broker = await RawBroker.start({ connack: 132 })
    await using bridge = startLink({ url: broker.url, clock: new FakeClock(), protocol: '5' })
    await until('the wait', () => bridge.link.status().state === 'waiting')
    expect(bridge.link.status().reason).toBe('protocol')
    expect(broker.connects).toBe(1)
  })
})
