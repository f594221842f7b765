/** What is larger than the broker, or the bridge, takes. */
import { describe, expect, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'

import { startBridge } from '../support/bridge.ts'
import { Mosquitto } from '../support/brokers.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { Observer, retainedOn } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { portOf, settled, startAedes, startLink, withoutMosquitto } from './support.ts'

const app = { id: 'com.example.large', settings: { database: 'x'.repeat(300_000) } }

const LIMITED = [
  ['5', 'message_size_limit 100000'],
  ['5', 'max_packet_size 100000'],
  ['3.1.1', 'max_packet_size 100000'],
] as const

describe.skipIf(withoutMosquitto)('an answer that the broker does not take', () => {
  test.each(LIMITED)('becomes too_large under MQTT %s with %s', { timeout: 60_000 }, async (protocol, line) => {
    const broker = await Mosquitto.start({ config: [line] })
    await using world = await World.start({ broker, hub: { apps: [app] }, env: { MQTT_PROTOCOL: protocol } })
    const { observer } = world
    const ask = patient(world)
    for (let time = 1; time <= 2; time += 1) {
      expect(await ask(`home/app/${app.id}/cmd/get-settings`)).toMatchObject({
        ok: false,
        command: 'get-settings',
        app: app.id,
        error: { code: 'too_large' },
      })
      expect(await ask('bridge/cmd/ping')).toMatchObject({ ok: true })
    }
    expect(observer.last('hub2mqtt/bridge/state')).toBe('online')
    // Under 3.1.1 the broker tells its limit by hanging up, and only the first time that is news.
    const connections = observer.texts('hub2mqtt/bridge/state').filter((text) => text === 'offline').length
    expect(connections).toBeLessThanOrEqual(protocol === '5' ? 0 : 1)
  })

  /** Like `World.ask`, with more patience. */
  function patient({ observer }: World) {
    return async (topic: string): Promise<unknown> => {
      const result = `hub2mqtt/${topic.replace('cmd', 'result')}`
      const before = observer.texts(result).length
      await observer.publish(`hub2mqtt/${topic}`, '')
      return JSON.parse(await until(result, () => observer.texts(result)[before], 20_000))
    }
  }
})

test('an answer over the limit of the embedded broker becomes too_large, and a bystander is answered', async () => {
  const port = await freePort()
  const hub = await EmulatedHub.start({ keys: { [KEY]: ALL_SCOPES }, apps: [app], flavour: 'older' })
  await using bridge = startBridge({
    HUB_URL: hub.url,
    HUB_API_KEY: KEY,
    MQTT_EMBEDDED_PORT: String(port),
    MQTT_EMBEDDED_MAX_PAYLOAD: '100KiB',
  })
  await until('the broker', () => bridge.lines.some((line) => line.includes('embedded MQTT broker')))
  await using observer = await Observer.on(port)
  await until('the hub', () => observer.last('hub2mqtt/home/state') === 'online')
  await Promise.all([
    observer.publish(`hub2mqtt/home/app/${app.id}/cmd/get-settings`, ''),
    observer.publish('hub2mqtt/bridge/cmd/ping', ''),
  ])
  const answer = await until('the answer', () => observer.last(`hub2mqtt/home/app/${app.id}/result/get-settings`))
  expect(JSON.parse(answer)).toMatchObject({ ok: false, error: { code: 'too_large' } })
  await until('the bystander', () => observer.last('hub2mqtt/bridge/result/ping'))
  expect(observer.texts('hub2mqtt/bridge/state')).toEqual(['online'])
  await hub.close()
})

describe.skipIf(withoutMosquitto)('a command far over every limit', () => {
  test.each(['5', '3.1.1'] as const)('of 20 MB is answered under MQTT %s, and the bridge stays', async (protocol) => {
    await using broker = await Mosquitto.start()
    await using world = await World.start({ broker, env: { MQTT_PROTOCOL: protocol } })
    const answer = await world.ask('bridge/cmd/ping', Buffer.alloc(20_000_000, ' '))
    expect(answer).toMatchObject({ ok: false, error: { code: 'invalid_payload' } })
    expect(await world.ask('bridge/cmd/ping')).toMatchObject({ ok: true })
    expect(world.observer.texts('hub2mqtt/bridge/state')).toEqual(['online'])
  })

  test('is answered on the response topic that it names', async () => {
    await using world = await World.start({ broker: 'mosquitto' })
    const { observer } = world
    await observer.publish('hub2mqtt/bridge/cmd/ping', 'x'.repeat(3_000_000), {
      properties: { responseTopic: 'asker', correlationData: Buffer.from('7') },
    })
    await until('the answer', () => observer.last('asker'))
    expect(observer.seen.find(({ topic }) => topic === 'asker')?.packet.properties?.correlationData?.toString()).toBe(
      '7',
    )
  })
})

describe.skipIf(withoutMosquitto)('messages for Home Assistant that the broker does not take', () => {
  test.each([
    ['5', 'message_size_limit 4000'],
    ['5', 'max_packet_size 4000'],
    ['3.1.1', 'max_packet_size 4000'],
  ] as const)('do not keep the bridge from being online (MQTT %s, %s)', { timeout: 60_000 }, async (protocol, line) => {
    await using broker = await Mosquitto.start({ config: [line] })
    const hub = await EmulatedHub.start({ keys: { [KEY]: ALL_SCOPES } })
    await using observer = await Observer.on(broker.port)
    const apps = [...hub.apps.keys()]
    await using bridge = startBridge({
      HUB_URL: hub.url,
      HUB_API_KEY: KEY,
      MQTT_URL: broker.url,
      MQTT_PROTOCOL: protocol,
    })
    await until('online', () => observer.last('hub2mqtt/bridge/state') === 'online')
    for (const id of apps) await until('the app', () => observer.last(`hub2mqtt/home/app/${id}`))
    const refused = () => bridge.lines.filter((text) => text.includes('"reason":"too_large"'))
    await until('the refusals', () => refused().length >= apps.length, 40_000)
    await until('online', () => observer.last('hub2mqtt/bridge/state') === 'online')
    // Their sizes are alike: not each of them costs a connection.
    const lost = observer.texts('hub2mqtt/bridge/state').filter((text) => text === 'offline').length
    expect(lost).toBeLessThanOrEqual(protocol === '5' ? 0 : 1)
    await observer.publish('hub2mqtt/bridge/cmd/ping', '')
    await until('an answer', () => observer.last('hub2mqtt/bridge/result/ping'))
    await hub.close()
  })
})

test('online waits for what gates it and for nothing else', async () => {
  await using broker = await startAedes()
  await using observer = await Observer.on(portOf(broker.url))
  await using bridge = startLink({ url: broker.url, delaysOnline: (topic) => topic.startsWith('b/'), window: 1 })
  for (let i = 0; i < 50; i += 1) bridge.link.hold(`other/${i}`, 'later')
  for (let i = 0; i < 50; i += 1) bridge.link.hold(`b/app/${i}`, 'first')
  await settled(bridge)
  await until('everything', () => observer.last('other/49'))
  const order = observer.seen.map(({ topic }) => topic).filter((topic) => topic !== 'b/probe')
  expect(order.indexOf('b/state')).toBe(50)
  expect(order.slice(0, 50).every((topic) => topic.startsWith('b/app/'))).toBe(true)
  expect((await retainedOn(portOf(broker.url))).size).toBe(101)
})

test.skipIf(withoutMosquitto)('a limit that the broker no longer has is forgotten with the connection', async () => {
  await using broker = await Mosquitto.start({ config: ['message_size_limit 10000'] })
  await using bridge = startLink({ url: broker.url })
  bridge.link.hold('b/app/large', 'x'.repeat(20_000))
  await until('the refusal', () => bridge.link.status().deniedTopics === 1)
  expect(bridge.link.status().reconnects).toBe(0)
  await broker.stop()
  await broker.configure({})
  await broker.run()
  await settled(bridge, 2)
  const large = async () => (await retainedOn(broker.port)).get('b/app/large')
  await until('what was refused', async () => (await large()) === 'x'.repeat(20_000), 20_000)
})

test.skipIf(withoutMosquitto)(
  'what ended connections is tried again later, and is sent when it may be',
  { timeout: 60_000 },
  async () => {
    await using broker = await Mosquitto.start({ config: ['max_packet_size 10000'] })
    await using proxy = await TcpProxy.to(broker.port)
    const clock = new JumpClock()
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}`, clock, protocol: '3.1.1' })
    for (let i = 0; i < 8; i += 1) bridge.link.hold(`b/app/${i}`, 'x'.repeat(20_000 - i))
    await until('the refusals', () => bridge.link.status().deniedTopics === 8, 40_000)
    await settled(bridge)
    const { reconnects } = bridge.link.status()
    expect(reconnects).toBe(1)
    // Neither the next connection nor another payload of that size ends one: it is tried on another connection.
    proxy.reset()
    await until('the loss', () => bridge.link.status().reconnects === 2)
    await until('the connection', () => bridge.link.status().state === 'connected')
    bridge.link.hold('b/app/0', 'y'.repeat(20_000))
    await until('the refusal', () => bridge.link.status().deniedTopics === 8)
    await settled(bridge)
    const { publishes } = bridge.link.status()
    clock.jump(10 * 60_000)
    await until('the next try', () => bridge.link.status().publishes > publishes)
    await until('the next refusal', () => bridge.link.status().deniedTopics === 8)
    expect(bridge.link.status().reconnects).toBe(2)
    await broker.stop()
    await broker.configure({})
    await broker.run()
    await until(
      'all of them',
      () => bridge.link.status().deniedTopics === 0 && bridge.link.status().queued === 0,
      40_000,
    )
    await settled(bridge)
    const held = await retainedOn(broker.port)
    expect(held.get('b/app/0')).toBe('y'.repeat(20_000))
    expect(held.size).toBe(9)
  },
)
