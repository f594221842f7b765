import { describe, expect, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { startBridge } from '../support/bridge.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { withoutMosquitto } from './support.ts'

const app = { id: 'com.example.large', settings: { database: 'x'.repeat(300_000) } }

const LIMITED = [
  ['5', 'message_size_limit 100000'],
  ['5', 'max_packet_size 100000'],
  ['3.1.1', 'max_packet_size 100000'],
] as const

describe.skipIf(withoutMosquitto)('an answer that is too large for the broker', () => {
  test.each(LIMITED)('becomes too_large under MQTT %s with %s', { timeout: 60_000 }, async (protocol, line) => {
    const broker = await Mosquitto.start({ config: [line] })
    await using world = await World.start({ broker, hub: { apps: [app] }, env: { MQTT_PROTOCOL: protocol } })
    const { observer } = world
    for (let time = 1; time <= 2; time += 1) {
      expect(await world.request(`home/app/${app.id}/cmd/get-settings`)).toMatchObject({
        ok: false,
        command: 'get-settings',
        app: app.id,
        error: { code: 'too_large' },
      })
      expect(await world.request('bridge/cmd/ping')).toMatchObject({ ok: true })
    }
    expect(observer.last('hub2mqtt/bridge/state')).toBe('online')
    // Under MQTT 3.1.1, the bridge learns the broker's limit only from a lost connection.
    const connections = observer.texts('hub2mqtt/bridge/state').filter((text) => text === 'offline').length
    expect(connections).toBeLessThanOrEqual(protocol === '5' ? 0 : 1)
  })
})

test('an answer over the limit of the embedded broker becomes too_large, and another client is answered', async () => {
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

describe.skipIf(withoutMosquitto)('a published setting', () => {
  test.each(LIMITED.slice(1))(
    'too large under MQTT %s with %s leaves no older value',
    { timeout: 60_000 },
    async (protocol, line) => {
      const broker = await Mosquitto.start({ config: [line.replace('100000', '4096')] })
      const hub = { apps: [{ id: 'the.app', settings: { text: 'old' } }] }
      const env = { MQTT_PROTOCOL: protocol, SETTINGS_PUBLISH: '{"the.app":{"text":"text"}}', DISCOVERY_FORMAT: 'off' }
      await using world = await World.start({ broker, hub, env })
      const { observer } = world
      const topic = 'hub2mqtt/home/app/the.app/setting/text'
      await observer.until('the old value', () => observer.last(topic) === '"old"')
      const set = async (value: string) => {
        await fetch(`${world.hub.url}/api/manager/apps/app/the.app/setting/text`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify({ value }),
        })
        await observer.publish('hub2mqtt/home/cmd/refresh', '')
      }
      await set('x'.repeat(5000))
      await observer.until('no value', () => observer.last(topic) === '', 20_000)
      await set('new')
      await observer.until('the new value', () => observer.last(topic) === '"new"', 20_000)
      expect(observer.last('hub2mqtt/home/app/the.app')).toContain('"id":"the.app"')
    },
  )
})

describe.skipIf(withoutMosquitto)('a command far over every limit', () => {
  test.each(['5', '3.1.1'] as const)('of 20 MB is answered under MQTT %s, and the bridge stays', async (protocol) => {
    await using broker = await Mosquitto.start()
    await using world = await World.start({ broker, env: { MQTT_PROTOCOL: protocol } })
    const answer = await world.request('bridge/cmd/ping', Buffer.alloc(20_000_000, ' '))
    expect(answer).toMatchObject({ ok: false, error: { code: 'invalid_payload' } })
    expect(await world.request('bridge/cmd/ping')).toMatchObject({ ok: true })
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
