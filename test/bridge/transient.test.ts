/** Tests that the bridge clears retained messages on topics that must have none, such as those of events. */
import { describe, expect, test } from 'vitest'
import { type BrokerKind, WITH_PROTOCOLS } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const OURS = [
  'home/event',
  'home/app/com.athom.hue/event',
  'home/app/ghost/event',
  'bridge/presence',
  'bridge/probe',
].map((topic) => `hub2mqtt/${topic}`)
/** Topics of another program, which the bridge must not change. */
const THEIRS = ['hub2mqtt/kitchen/event', 'hub2mqtt/kitchen/app/lamp/event', 'hub2mqtt/home/app/a/b/event']
const FORGED = '{"event_type":"crashed","app":"com.athom.hue","changed":["state"],"at":"2026-01-01T00:00:00.000Z"}'

async function start(broker: BrokerKind, protocol: string): Promise<World> {
  const world = await World.start({ broker, env: { MQTT_PROTOCOL: protocol } })
  await world.settle()
  return world
}

async function forge({ observer }: World): Promise<void> {
  for (const topic of [...OURS, ...THEIRS]) await observer.publish(topic, FORGED, { retain: true })
}

async function left(world: World) {
  const held = await retainedOn(world.broker.port)
  return [...OURS, ...THEIRS].filter((topic) => held.has(topic))
}

const clears = ({ observer }: World) => OURS.map((topic) => observer.texts(topic).filter((text) => text === '').length)

describe.concurrent.each(WITH_PROTOCOLS)(
  'on %s under MQTT %s, a message that other clients retain on a topic for events or answers',
  (...kind) => {
    test('is cleared by a refresh of the hub, and each is cleared once', async () => {
      await using world = await start(...kind)
      await forge(world)
      await world.request('home/cmd/refresh')
      await until('no forged message', async () => (await left(world)).length === THEIRS.length, 5_000)
      await world.settle()
      expect(await left(world)).toEqual(THEIRS)
      expect(clears(world)).toEqual(OURS.map(() => 1))
    })

    test('is not confused with messages of the bridge, or unretained ones of other clients', async () => {
      await using world = await start(...kind)
      const { hub, app, observer } = world
      const before = clears(world)
      hub.crash(app, 'Error: out of luck')
      await observer.until('the event', () => observer.last('hub2mqtt/home/event'))
      for (const topic of OURS) await observer.publish(topic, FORGED)
      await world.settle()
      world.clock.jump(10_000)
      await world.settle()
      expect(clears(world)).toEqual(before)
    })
  },
)

describe.skipIf(!WITH_PROTOCOLS.some(([, protocol]) => protocol === '5'))('under MQTT 5', { concurrent: true }, () => {
  test('a message that other clients retain on a topic for events or answers is cleared within five seconds', async () => {
    await using world = await start('mosquitto', '5')
    await forge(world)
    await until('no forged message', async () => (await left(world)).length === THEIRS.length, 5_000)
    expect(await left(world)).toEqual(THEIRS)
  })
})
