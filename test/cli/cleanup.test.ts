import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type CleanupOptions, cleanup } from '../../src/cli/cleanup.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { startWorld, World } from '../support/world.ts'

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
    broker: { urls: [world.broker.url] },
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
  const users = { hub2mqtt: 'secret', homeassistant: 'other', observer: 'all' }

  /** What a bridge has left on a broker with the rules of the example. */
  async function left(): Promise<World> {
    const acl = [...readFileSync('config/mosquitto/acl', 'utf8').split('\n'), 'user observer', 'topic readwrite #']
    const broker = await Mosquitto.start({ acl, users })
    const login = { username: 'observer', password: users.observer }
    const world = await startWorld({ broker, login, env: { MQTT_USERNAME: 'hub2mqtt', MQTT_PASSWORD: users.hub2mqtt } })
    await world.settle()
    await world.bridge.stop()
    return world
  }

  const as = (username: keyof typeof users, { broker }: World) => ({
    broker: { urls: [broker.url], username, password: users[username] },
    clear: true,
  })

  test("the bridge's own user may clear what the bridge has left", async () => {
    const world = await left()
    const access = as('hub2mqtt', world)
    const { found, left: refused } = await run(world, access)
    expect(found.length).toBeGreaterThan(30)
    expect(refused).toEqual([])
    expect(await run(world, access)).toEqual({ found: [], left: [] })
  })

  test('a user who may not is told so', async () => {
    const world = await left()
    await expect(run(world, as('homeassistant', world))).rejects.toThrow('neither publish nor read')
  })
})
