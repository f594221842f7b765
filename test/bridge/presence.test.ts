import { expect, test } from 'vitest'
import { startBridge } from '../support/bridge.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const GHOST = 'homeassistant/device/hub2mqtt--5f0c8a1b2d3e4f5061728394--ghost/config'

test('two bridges on one base topic say so, once each, and what one leaves behind is put right', async () => {
  await using world = await World.start()
  const { observer } = world
  const before = observer.texts(`hub2mqtt/home/app/${world.app}`).length
  await using rival = startBridge({ ...world.env, MQTT_CLIENT_ID: 'rival' })
  const complaint = (lines: readonly string[]) => lines.filter((line) => line.includes('uses the same base topic'))
  const { bridge } = world
  await until('the first to notice', () => complaint(bridge.lines).length > 0)
  await world.ask('home/cmd/refresh')
  expect(observer.texts(`hub2mqtt/home/app/${world.app}`)).toHaveLength(before)
  const leftBehind = ['hub2mqtt/home/info', 'hub2mqtt/home/app/ghost', GHOST]
  for (const topic of leftBehind) await observer.publish(topic, '{"origin":{"name":"hub2mqtt"}}', { retain: true })
  await rival.stop()
  const states = () => observer.texts('hub2mqtt/bridge/state')
  await until('the goodbye taken back', () => states().includes('offline') && states().at(-1) === 'online')
  await world.ask('home/cmd/refresh')
  expect(complaint(bridge.lines)).toHaveLength(1)
  await until('what it left to be gone', () => leftBehind.slice(1).every((topic) => observer.last(topic) === ''))
  expect(JSON.parse(observer.last('hub2mqtt/home/info') ?? '')).toMatchObject({ api: 'manager' })
  await world.ask('home/cmd/refresh')
  expect(observer.texts(`hub2mqtt/home/app/${world.app}`)).toHaveLength(before)
})

test('a retained or malformed greeting impresses nobody', async () => {
  await using world = await World.start()
  const topic = 'hub2mqtt/bridge/presence'
  await world.observer.publish(topic, '{"instance":"x","started_at":"y"}', { retain: true })
  for (const nonsense of ['', '{', '[]', '{"instance":1}', 'x'.repeat(5000)])
    await world.observer.publish(topic, nonsense)
  await world.ask('bridge/cmd/ping')
  expect(world.bridge.lines.filter((line) => line.includes('same base topic'))).toEqual([])
})
