import { afterEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { startBridge, World } from '../support/world.ts'

let world: World | undefined
afterEach(async () => {
  await world?.[Symbol.asyncDispose]()
})

test('two bridges on one base topic say so, once each, and leave what is retained alone', async () => {
  world = await World.start()
  const { observer } = world
  const before = observer.texts(`hub2mqtt/home/app/${world.app}`).length
  await using rival = startBridge({ ...world.env, MQTT_CLIENT_ID: 'rival' })
  const complaint = (lines: readonly string[]) => lines.filter((line) => line.includes('uses the same base topic'))
  const { bridge } = world
  await until('the first to notice', () => complaint(bridge.lines).length > 0)
  await rival.stop()
  await until('the goodbye taken back', () => observer.texts('hub2mqtt/bridge/state').at(-1) === 'online')
  expect(observer.texts('hub2mqtt/bridge/state')).toContain('offline')
  await world.ask('home/cmd/refresh')
  expect(complaint(bridge.lines)).toHaveLength(1)
  expect(observer.texts(`hub2mqtt/home/app/${world.app}`)).toHaveLength(before)
})

test('a retained or malformed greeting impresses nobody', async () => {
  world = await World.start()
  const topic = 'hub2mqtt/bridge/presence'
  await world.observer.publish(topic, '{"instance":"x","started_at":"y"}', { retain: true })
  for (const nonsense of ['', '{', '[]', '{"instance":1}', 'x'.repeat(5000)])
    await world.observer.publish(topic, nonsense)
  await world.ask('bridge/cmd/ping')
  expect(world.bridge.lines.filter((line) => line.includes('same base topic'))).toEqual([])
})
