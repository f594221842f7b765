/** Tests that the bridge clears retained messages on topics that must have none, such as those of events. */
import { expect, test } from 'vitest'
import { WITH_PROTOCOLS } from '../support/brokers.ts'
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

async function left(world: World) {
  const held = await retainedOn(world.broker.port)
  return [...OURS, ...THEIRS].filter((topic) => held.has(topic))
}

const clears = ({ observer }: World) => OURS.map((topic) => observer.texts(topic).filter((text) => text === '').length)

test.concurrent.each(WITH_PROTOCOLS)(
  'on %s under MQTT %s, a message that other clients retain on a topic for events or answers is cleared once, unlike any other',
  async (broker, protocol) => {
    await using world = await World.start({ broker, env: { MQTT_PROTOCOL: protocol } })
    await world.settle()
    const { hub, app, observer } = world
    const before = clears(world)
    hub.crash(app, 'Error: out of luck')
    await observer.until('the event', () => observer.last('hub2mqtt/home/event'))
    for (const topic of OURS) await observer.publish(topic, FORGED)
    await world.settle()
    world.clock.jump(10_000)
    await world.settle()
    expect(clears(world)).toEqual(before)
    for (const topic of [...OURS, ...THEIRS]) await observer.publish(topic, FORGED, { retain: true })
    // Under MQTT 5, the bridge recognises the messages when they are published.
    if (protocol === '3.1.1') await world.request('home/cmd/refresh')
    await until('no forged message', async () => (await left(world)).length === THEIRS.length, 5_000)
    await world.settle()
    expect(await left(world)).toEqual(THEIRS)
    expect(clears(world)).toEqual(before.map((count) => count + 1))
  },
)
