import { expect, test } from 'vitest'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { startBridge } from '../support/bridge.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { withoutMosquitto } from './support.ts'

const app = { id: 'com.example.large', settings: { database: 'x'.repeat(300_000), mode: 'old' } }

const LIMITED = [
  ['5', 'message_size_limit 50000'],
  ['5', 'max_packet_size 50000'],
  ['3.1.1', 'max_packet_size 50000'],
] as const

test.skipIf(withoutMosquitto).each(LIMITED)(
  'under MQTT %s with %s, an answer that is too large for the broker becomes too_large, and a setting leaves no older value',
  { timeout: 60_000 },
  async (protocol, line) => {
    const broker = await Mosquitto.start({ config: [line] })
    const file = `settings: {publish: {${app.id}: {mode: text}}}\n`
    const env = { MQTT_PROTOCOL: protocol, DISCOVERY_FORMAT: 'off' }
    await using world = await World.start({ broker, hub: { apps: [app] }, env, file })
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
    const topic = `hub2mqtt/home/app/${app.id}/setting/mode`
    await observer.until('the old value', () => observer.last(topic) === '"old"')
    for (const [value, published] of [
      ['x'.repeat(60_000), ''],
      ['new', '"new"'],
    ] as const) {
      await fetch(`${world.hub.url}/api/manager/apps/app/${app.id}/setting/mode`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ value }),
      })
      await observer.publish('hub2mqtt/home/cmd/refresh', '')
      await observer.until('the published value', () => observer.last(topic) === published, 20_000)
    }
    expect(observer.last(`hub2mqtt/home/app/${app.id}`)).toContain(`"id":"${app.id}"`)
  },
)

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

test.skipIf(withoutMosquitto)(
  'a command of 20 MB is answered on the response topic that it names, and the bridge stays',
  async () => {
    await using world = await World.start({ broker: 'mosquitto' })
    const { observer } = world
    await observer.publish('hub2mqtt/bridge/cmd/ping', Buffer.alloc(20_000_000, ' '), {
      properties: { responseTopic: 'asker', correlationData: Buffer.from('7') },
    })
    const answer = await until('the answer', () => observer.seen.find(({ topic }) => topic === 'asker'))
    expect(JSON.parse(answer.text)).toMatchObject({ ok: false, error: { code: 'invalid_payload' } })
    expect(answer.packet.properties?.correlationData?.toString()).toBe('7')
    expect(await world.request('bridge/cmd/ping')).toMatchObject({ ok: true })
    expect(observer.texts('hub2mqtt/bridge/state')).toEqual(['online'])
  },
)
