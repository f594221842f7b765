import { readFileSync } from 'node:fs'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { type CleanupOptions, cleanup } from '../../src/cli/cleanup.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { Fleet } from '../support/fleet.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

/** Topics of other programs below the same first level, and of another bridge under the same discovery prefix. */
const FOREIGN = {
  'hub2mqtt/kitchen/state': 'on',
  'hub2mqtt/kitchen/app/lamp': '{}',
  'homeassistant/device/lamp/config': '{"origin":{"name":"lamp"}}',
  'homeassistant/device/hub2mqtt--0815/config':
    '{"origin":{"name":"hub2mqtt"},"availability":[{"topic":"other/bridge/state"}],"components":{}}',
} as const

/** The time for which the cleanup waits for an answer. */
const PING_MS = 3_000

const run = ({ url }: { readonly url: string }, more: Partial<CleanupOptions> = {}) =>
  cleanup({
    broker: { urls: [url] },
    topics: createTopics('hub2mqtt'),
    prefix: 'homeassistant',
    hubs: [],
    clear: false,
    timeoutMs: 20_000,
    clock: systemClock,
    ...more,
  })

/** A clock that shortens the wait for the answers of bridges, for tests in which the bridges have stopped. */
const BRIEF: Clock = {
  ...systemClock,
  after: (ms, task) => systemClock.after(ms === PING_MS ? 100 : ms, task),
}

async function retain({ observer }: Pick<World, 'observer'>, messages: Readonly<Record<string, string>>) {
  for (const [topic, text] of Object.entries(messages)) await observer.publish(topic, text, { retain: true })
}

/** The tests for each broker run in order and share a bridge. The last test clears its messages. */
describe.each(BROKERS)('cleanup on %s', (broker) => {
  let world: World
  beforeAll(async () => {
    world = await World.start({ broker, env: { DISCOVERY_PREFIX: 'elsewhere' } })
    await world.settle()
    await world.restart()
    await world.settle()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('changes nothing while the bridge is running, also in place of a fleet', async () => {
    for (const former of ['', 'offline']) {
      await retain(world, { 'hub2mqtt/bridge/former/state': former })
      const before = await retainedOn(world.broker.port)
      await expect(run(world.broker, { clear: true })).rejects.toThrow(
        'a bridge is running with the base topic hub2mqtt: stop it first',
      )
      expect(await retainedOn(world.broker.port)).toEqual(before)
    }
    await retain(world, { 'hub2mqtt/bridge/former/state': '' })
    await world.bridge.stop()
  })

  test('recognises the hubs of a bridge by their names if its own information is missing', async () => {
    const info = world.observer.last('hub2mqtt/bridge/info') ?? ''
    const state = 'hub2mqtt/home/state'
    await retain(world, { 'hub2mqtt/bridge/info': '' })
    expect((await run(world.broker)).found).not.toContain(state)
    expect((await run(world.broker, { hubs: ['home'] })).found).toContain(state)
    await retain(world, { 'hub2mqtt/bridge/info': info })
  })

  test('refuses, with advice, if the broker still retains `online` from a bridge that does not answer', async () => {
    await retain(world, { 'hub2mqtt/bridge/state': 'online' })
    await expect(run(world.broker, { clear: true, clock: BRIEF })).rejects.toThrow(
      'none answers: stop it; if it no longer exists, clear',
    )
    await retain(world, { 'hub2mqtt/bridge/state': 'offline' })
  })

  test('shows what a bridge has left, clears it on request, and changes nothing else', async () => {
    await retain(world, FOREIGN)
    const before = await retainedOn(world.broker.port)
    const ours = [...before.keys()].filter((topic) => !(topic in FOREIGN)).sort()
    expect(ours.length).toBeGreaterThan(30)
    expect(await run(world.broker)).toEqual({ found: ours, left: [], isComplete: true })
    expect(await retainedOn(world.broker.port)).toEqual(before)
    expect(await run(world.broker, { clear: true })).toEqual({ found: ours, left: [], isComplete: true })
    expect(Object.fromEntries(await retainedOn(world.broker.port))).toEqual(FOREIGN)
    expect(await run(world.broker)).toEqual({ found: [], left: [], isComplete: true })
  })
})

test.skipIf(mosquittoPath === undefined)(
  'cleanup clears everything if there are more messages than a broker reliably sends, and a list may be incomplete',
  async () => {
    await using broker = await Mosquitto.start()
    const client = await connectAsync(broker.url, { protocolVersion: 5 })
    onTestFinished(() => client.endAsync(true))
    const text = JSON.stringify({
      origin: { name: 'hub2mqtt' },
      availability: [{ topic: 'hub2mqtt/bridge/state' }],
      padding: 'x'.repeat(600),
    })
    const messages = new Map([['hub2mqtt/bridge/info', '{"hubs":{"home":{}}}']])
    for (let app = 0; app < 1000; app += 1) {
      for (const last of ['', '/update']) messages.set(`hub2mqtt/home/app/app${app}${last}`, text)
      for (const platform of ['switch', 'sensor']) {
        messages.set(`homeassistant/${platform}/hub2mqtt/hub2mqtt--x--app${app}--a/config`, text)
      }
    }
    await Promise.all(
      [...messages].map(([topic, payload]) => client.publishAsync(topic, payload, { qos: 1, retain: true })),
    )
    const all = [...messages.keys()].sort()
    expect(await run(broker)).toEqual({ found: all, left: [], isComplete: false })
    // The cleanup must remember the hub, because the messages that it clears first contain the only reference to it.
    expect(await run(broker, { clear: true })).toEqual({ found: all, left: [], isComplete: true })
  },
  60_000,
)

describe.skipIf(mosquittoPath === undefined)('with a broker that has an ACL', () => {
  const users = { hub2mqtt: 'secret', homeassistant: 'other', observer: 'all' }

  test("only the bridge's own user may clear what the bridge has left", async () => {
    const acl = [...readFileSync('config/mosquitto/acl', 'utf8').split('\n'), 'user observer', 'topic readwrite #']
    const broker = await Mosquitto.start({ acl, users })
    const login = { username: 'observer', password: users.observer }
    const env = { MQTT_USERNAME: 'hub2mqtt', MQTT_PASSWORD: users.hub2mqtt }
    await using world = await World.start({ broker, observer: login, env })
    await world.settle()
    await world.bridge.stop()
    const as = (username: keyof typeof users) => ({
      broker: { urls: [broker.url], username, password: users[username] },
      clear: true,
    })
    await expect(run(broker, as('homeassistant'))).rejects.toThrow('does not let this user publish and read')
    const { found, left } = await run(broker, as('hub2mqtt'))
    expect(found.length).toBeGreaterThan(30)
    expect(left).toEqual([])
    expect(await run(broker, as('hub2mqtt'))).toEqual({ found: [], left: [], isComplete: true })
  })
})

const HUB_INFO = {
  ...{ id: null, firmware: null, api: null, realtime: 'polling', permissions: [], commands: [], apps: 0 },
  ...{ owner: 'former', epoch: 3 },
}

/** The messages of a removed member, with hubs that are no longer configured. */
const FORMER = {
  'hub2mqtt/bridge/former/state': 'offline',
  'hub2mqtt/bridge/former/info': '{"hubs":{"attic":{}}}',
  'hub2mqtt/attic/state': 'online',
  // The info of the member does not list this hub, because the member has stopped.
  'hub2mqtt/cellar/info': JSON.stringify(HUB_INFO),
  'hub2mqtt/cellar/state': 'online',
} as const

test('cleanup of a fleet clears what all members have left, former ones too, and changes nothing else', async () => {
  await using world = await Fleet.build({ hubs: 3, env: { DISCOVERY_PREFIX: 'elsewhere' } })
  const members = ['1/2', '2/2'].map((shard) => world.begin({ FLEET_SHARD: shard }))
  const { port } = world.broker
  await world.served(['shard-1', 'shard-2'])
  await until('devices', () => world.observer.seen.some(({ topic }) => topic.startsWith('elsewhere/device/')))
  await expect(run(world.broker, { clear: true })).rejects.toThrow(
    /hub2mqtt\/bridge\/shard-[12]\/state, this member of a fleet is running: stop it first/,
  )
  await Promise.all(members.map((one) => one.stop()))
  // No member can have the name in the first topic. The second topic contains a command that was retained by mistake.
  const none = { 'hub2mqtt/bridge/Upper/state': 'online', 'hub2mqtt/bridge/cmd/log-level': 'debug' }
  const similar = { 'hub2mqtt/kitchen/info': '{"owner":"shard-1"}' }
  const foreign = { ...FOREIGN, ...none, ...similar }
  // `bridge/state` stays `online` if all members stop at the same time.
  await retain(world, { ...foreign, ...FORMER, 'hub2mqtt/bridge/state': 'online' })
  const ours = [...(await retainedOn(port)).keys()].filter((topic) => !(topic in foreign)).sort()
  expect(ours).toEqual(
    expect.arrayContaining([
      ...Object.keys(FORMER),
      'hub2mqtt/fleet',
      'hub2mqtt/bridge/state',
      ...['state', 'info', 'health', 'log-level', 'discovery'].map((last) => `hub2mqtt/bridge/shard-2/${last}`),
      ...[...world.hubs.keys()].map((hub) => `hub2mqtt/${hub}/state`),
    ]),
  )
  const access = { clock: BRIEF }
  expect(await run(world.broker, access)).toEqual({ found: ours, left: [], isComplete: true })
  expect(await run(world.broker, { ...access, clear: true })).toEqual({ found: ours, left: [], isComplete: true })
  expect(Object.fromEntries(await retainedOn(port))).toEqual(foreign)
}, 60_000)
