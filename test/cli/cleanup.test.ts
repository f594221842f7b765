import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type CleanupOptions, cleanup } from '../../src/cli/cleanup.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { World } from '../support/world.ts'

const FOREIGN = {
  // A program of somebody else below the same first level, and another bridge under the same discovery prefix.
  'hub2mqtt/kitchen/state': 'on',
  'hub2mqtt/kitchen/app/lamp': '{}',
  'homeassistant/device/lamp/config': '{"origin":{"name":"lamp"}}',
  'homeassistant/device/hub2mqtt--0815/config':
    '{"origin":{"name":"hub2mqtt"},"availability":[{"topic":"other/bridge/state"}],"components":{}}',
} as const

const run = (world: World, more: Partial<CleanupOptions> = {}) =>
  cleanup({
    broker: { url: world.broker.url },
    topics: createTopics('hub2mqtt'),
    prefix: 'homeassistant',
    hubs: [],
    clear: false,
    timeoutMs: 20_000,
    clock: systemClock,
    ...more,
  })

describe.each(BROKERS)('cleanup on %s', (broker) => {
  test('shows what a bridge has left, clears it when told to, and touches nothing else', async () => {
    await using world = await World.start({ broker, env: { DISCOVERY_PREFIX: 'elsewhere' } })
    await world.settle()
    await world.restart()
    await world.settle()
    for (const [topic, payload] of Object.entries(FOREIGN)) {
      await world.observer.publish(topic, payload, { retain: true })
    }
    await world.bridge.stop()
    const before = await retainedOn(world.broker.port)
    const ours = [...before.keys()].filter((topic) => !(topic in FOREIGN)).sort()
    expect(ours.length).toBeGreaterThan(30)
    expect(await run(world)).toEqual({ found: ours, left: [] })
    expect(await retainedOn(world.broker.port)).toEqual(before)
    expect(await run(world, { clear: true })).toEqual({ found: ours, left: [] })
    expect(Object.fromEntries(await retainedOn(world.broker.port))).toEqual(FOREIGN)
    expect(await run(world)).toEqual({ found: [], left: [] })
  })

  test('leaves a bridge alone that is running', async () => {
    await using world = await World.start({ broker })
    await world.settle()
    const before = await retainedOn(world.broker.port)
    await expect(run(world, { clear: true })).rejects.toThrow('stop it first')
    expect(await retainedOn(world.broker.port)).toEqual(before)
  })

  test('knows the hubs of a bridge whose own information is gone by their names', async () => {
    await using world = await World.start({ broker })
    await world.settle()
    await world.bridge.stop()
    await world.observer.publish('hub2mqtt/bridge/info', '', { retain: true })
    const state = 'hub2mqtt/home/state'
    expect((await run(world)).found).not.toContain(state)
    expect((await run(world, { hubs: ['home'] })).found).toContain(state)
  })
})

describe.skipIf(mosquittoPath === undefined)('with a broker that has rules', () => {
  const acl = readFileSync('config/mosquitto/acl', 'utf8').split('\n')
  const users = { hub2mqtt: 'secret', homeassistant: 'other', observer: 'all' }
  const all = ['user observer', 'topic readwrite #']

  test("the bridge's own user may clear what the bridge has left", async () => {
    const broker = await Mosquitto.start({ acl: [...acl, ...all], users })
    const login = { username: 'observer', password: 'all' }
    const env = { MQTT_USERNAME: 'hub2mqtt', MQTT_PASSWORD: 'secret' }
    await using world = await World.start({ broker, login, env })
    await world.settle()
    await world.bridge.stop()
    const access = { url: broker.url, username: 'hub2mqtt', password: 'secret' }
    const { found, left } = await run(world, { broker: access, clear: true })
    expect(found.length).toBeGreaterThan(30)
    expect(left).toEqual([])
    expect(await run(world, { broker: access })).toEqual({ found: [], left: [] })
  })

  test('a user who may not is told so', async () => {
    const broker = await Mosquitto.start({ acl: [...acl, ...all], users })
    const login = { username: 'observer', password: 'all' }
    const env = { MQTT_USERNAME: 'hub2mqtt', MQTT_PASSWORD: 'secret' }
    await using world = await World.start({ broker, login, env })
    await world.settle()
    await world.bridge.stop()
    const access = { url: broker.url, username: 'homeassistant', password: 'other' }
    await expect(run(world, { broker: access, clear: true })).rejects.toThrow('neither publish nor read')
  })
})
