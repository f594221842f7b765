/** Home Assistant's side of the bridge as users run it: what the broker holds, and what is told to whom. */
import { describe, expect, test } from 'vitest'
import { retainedOn } from '../support/brokers.ts'
import { until } from '../support/until.ts'
import { BROKERS, KEY, useWorlds, type World } from '../support/world.ts'
import { eventually } from './support/eventually.ts'
import { faultsOf, faultsOfUpdate } from './validate.ts'

const HUB = '5f0c8a1b2d3e4f5061728394'
const HUE = `homeassistant/device/hub2mqtt--${HUB}--com_athom_hue/config`
const FOREIGN = 'homeassistant/device/other/config'
const FOREIGN_PAYLOAD = '{"origin":{"name":"other"},"device":{},"components":{}}'

const start = useWorlds()

/** Discovery topics that the broker holds. */
async function discovered(world: World): Promise<Map<string, string>> {
  const held = await retainedOn(world.broker.port)
  return new Map([...held].filter(([topic]) => /^(homeassistant|elsewhere)\//.test(topic)))
}

/** Waits for so many, and, as a broker may be slow to tell what it holds, for what else must be true of them. */
function untilDiscovered(
  world: World,
  size: number,
  check: (held: ReadonlyMap<string, string>) => void = () => {},
): Promise<Map<string, string>> {
  return eventually('the discovery topics', async () => {
    const found = await discovered(world)
    expect(found.size).toBe(size)
    check(found)
    return found
  })
}

/** The bridge, the hub and its eight apps. */
const ALL = 10
const told = (world: World, since: number) =>
  world.observer.seen
    .slice(since)
    .filter(({ topic }) => topic.startsWith('homeassistant/') && topic.endsWith('/config'))
const componentsOf = (payload: string | undefined) => Object.keys(JSON.parse(payload ?? '{}').components ?? {})

describe.each(BROKERS)('on %s', (broker) => {
  test.each(['older', 'newer'] as const)(
    'every device of a hub that is %s is one that Home Assistant takes',
    async (flavour) => {
      const world = await start({ broker, hub: { flavour } })
      const held = await untilDiscovered(world, ALL)
      for (const [topic, payload] of held) expect(faultsOf(topic, payload), topic).toEqual([])
      await eventually('the updates', async () => {
        const updates = [...(await retainedOn(world.broker.port))].filter(([topic]) => topic.endsWith('/update'))
        expect(updates).toHaveLength(world.hub.apps.size)
        for (const [topic, payload] of updates) expect(faultsOfUpdate(payload), topic).toEqual([])
        return true
      })
      expect(componentsOf(held.get(HUE)).includes('garbage_collect')).toBe(flavour === 'older')
      const hub = componentsOf(held.get(`homeassistant/device/hub2mqtt--${HUB}/config`))
      expect(hub.includes('speak')).toBe(flavour === 'older')
    },
  )

  test('nothing is told again when the bridge starts and nothing has changed', async () => {
    const world = await start({ broker })
    await untilDiscovered(world, ALL)
    const seen = world.observer.seen.length
    await world.restart()
    await world.ready()
    world.hub.install('fi.kivinen.sauna')
    // The newest comes last.
    await until('the new app', () => told(world, seen).some(({ topic }) => topic.includes('sauna')))
    expect(told(world, seen)).toHaveLength(1)
  })

  test('what went away while the bridge was not there leaves nothing behind, and nothing of others is touched', async () => {
    const world = await start({ broker })
    await untilDiscovered(world, ALL)
    await world.observer.publish(FOREIGN, FOREIGN_PAYLOAD, { retain: true })
    await world.bridge.stop()
    world.hub.uninstall('com.athom.hue')
    await world.restart({ APPS_EXCLUDE: 'net.*' })
    await untilDiscovered(world, ALL - 2 + 1, (left) => {
      expect(left.get(FOREIGN)).toBe(FOREIGN_PAYLOAD)
      expect([...left.keys()].filter((topic) => /hue|net_/.test(topic))).toEqual([])
    })
  })

  test('another form and back leaves nothing behind', async () => {
    const world = await start({ broker })
    await untilDiscovered(world, ALL)
    await world.restart({ DISCOVERY_FORMAT: 'component' })
    const entities = await untilDiscovered(world, 4 + 8 + 8 * 16)
    for (const [topic, payload] of entities) expect(faultsOf(topic, payload), topic).toEqual([])
    expect(world.observer.texts(HUE)).toContain('{"migrate_discovery":true}')
    await world.restart({ DISCOVERY_FORMAT: 'device' })
    expect([...(await untilDiscovered(world, ALL)).keys()]).toContain(HUE)
    await world.restart({ DISCOVERY_FORMAT: 'off' })
    await untilDiscovered(world, 0)
    await eventually('nothing of it', async () => {
      const ours = [...(await retainedOn(world.broker.port)).keys()]
      expect(ours.filter((topic) => /discovery|log-level|summary|update$/.test(topic))).toEqual([])
      return true
    })
  })

  test('another prefix leaves nothing behind under the one before, whatever else changed meanwhile', async () => {
    const world = await start({ broker })
    await untilDiscovered(world, ALL)
    await world.bridge.stop()
    world.hub.uninstall('com.athom.hue')
    await world.restart({ DISCOVERY_PREFIX: 'elsewhere', DISCOVERY_FORMAT: 'component' })
    await untilDiscovered(world, 4 + 8 + 7 * 16, (found) => {
      expect([...found.keys()].filter((topic) => topic.startsWith('homeassistant/'))).toEqual([])
    })
    await until(
      'it to be forgotten',
      () => world.observer.last('hub2mqtt/bridge/discovery') === '{"prefixes":["elsewhere"]}',
    )
  })
})

test('a hub that cannot be read loses nothing', async () => {
  const world = await start()
  const before = await untilDiscovered(world, ALL)
  await world.bridge.stop()
  world.hub.behave('answer-status', { status: 500, operation: 'getApps' })
  const seen = world.observer.seen.length
  await world.restart({ DISCOVERY_PREFIX: 'elsewhere' })
  await until('the bridge', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
  await world.ask('bridge/cmd/ping')
  expect(await discovered(world)).toEqual(before)
  await world.restart()
  await until('the bridge', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
  await world.ask('bridge/cmd/ping')
  expect(told(world, seen)).toEqual([])
  world.hub.behaveWell()
  await world.ready()
  expect(await untilDiscovered(world, ALL)).toEqual(before)
})

test('a hub or a base topic by another name keeps its devices', async () => {
  const world = await start()
  const before = await untilDiscovered(world, ALL)
  await world.restart({ HUB_NAME: 'attic', MQTT_BASE_TOPIC: 'other/base' })
  await until('the new topics', () => world.observer.last(HUE)?.includes('other/base/attic/app/com.athom.hue'))
  await untilDiscovered(world, ALL, (after) => {
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
  })
})

test('a hub that is renamed while the bridge runs keeps its devices, and Home Assistant sees none go', async () => {
  const world = await start({ file: 'hubs: { home: { realtime: true } }' })
  await untilDiscovered(world, ALL)
  world.bridge.reload('hubs: { attic: { realtime: true } }')
  await until('the new topics', () => world.observer.last(HUE)?.includes('hub2mqtt/attic/app/com.athom.hue'))
  await until('the last app', () => told(world, 0).at(-1)?.text.includes('hub2mqtt/attic/'))
  expect(told(world, 0).filter(({ text }) => text === '')).toEqual([])
})

test('settings that are published at run time become entities, and stop being some', async () => {
  const world = await start({ file: 'settings: {}' })
  await untilDiscovered(world, ALL)
  world.bridge.reload('settings: { publish: { com.athom.hue: { transition: { type: number, min: 0, max: 500 } } } }')
  await until('the entity', () => componentsOf(world.observer.last(HUE)).includes('setting_transition'))
  expect(faultsOf(HUE, world.observer.last(HUE) ?? '')).toEqual([])
  world.bridge.reload('settings: {}')
  await until('its end', () => !componentsOf(world.observer.last(HUE)).includes('setting_transition'))
  const stubs = world.observer.texts(HUE).map((text) => JSON.parse(text).components.setting_transition)
  expect(stubs.slice(-2)).toEqual([{ platform: 'number' }, undefined])
})

test('a hub that is no longer configured leaves no device', async () => {
  const world = await start()
  await untilDiscovered(world, ALL)
  await world.hub.reboot({ id: 'another' })
  await until('the other hub', () => world.observer.last('hub2mqtt/home/info')?.includes('another'))
  await untilDiscovered(world, ALL, (found) => {
    expect([...found.keys()].filter((topic) => topic.includes(HUB))).toEqual([])
  })
  await world.bridge.stop()
  await world.hub.reboot({ id: 'third' })
  await world.restart()
  await world.ready()
  await until('the third hub', () => world.observer.last('hub2mqtt/home/info')?.includes('third'))
  await untilDiscovered(world, ALL, (found) => {
    expect([...found.keys()].filter((topic) => topic.includes('another'))).toEqual([])
  })
})

test('what a key no longer permits is named as gone, and then left out', async () => {
  const world = await start()
  await untilDiscovered(world, ALL)
  world.hub.setKeys({ [KEY]: ['hub.app.readonly'] })
  await world.ask('home/cmd/refresh')
  await until('it to go', () => !componentsOf(world.observer.last(HUE)).includes('restart'))
  const [stubbed] = world.observer.texts(HUE).slice(-2)
  expect(JSON.parse(stubbed ?? '').components.restart).toEqual({ platform: 'button' })
  expect(componentsOf(world.observer.last(HUE))).toEqual(
    expect.arrayContaining(['running', 'problem', 'state', 'event', 'crash_count']),
  )
})

test('a device whose topic is emptied comes back', async () => {
  const world = await start()
  await untilDiscovered(world, ALL)
  await world.observer.publish(HUE, '', { retain: true })
  await until('it to be empty', () => world.observer.last(HUE) === '')
  await until('it to be back', () => componentsOf(world.observer.last(HUE) || '{}').length === 16)
})

test('Home Assistant is told everything again when it was born, and only then', async () => {
  const world = await start()
  const held = await untilDiscovered(world, ALL)
  const since = world.observer.seen.length
  await world.observer.publish('homeassistant/status', 'offline')
  await world.observer.publish('homeassistant/status', 'online')
  await until('all devices', () => told(world, since).length === ALL)
  const topics = new Set(world.observer.seen.slice(since).map(({ topic }) => topic))
  for (const topic of held.keys()) expect(topics).toContain(topic)
  for (const topic of ['bridge/state', 'home/state', 'home/info', 'home/summary', 'bridge/log-level', 'bridge/info']) {
    expect(topics).toContain(`hub2mqtt/${topic}`)
  }
  await until('the last state', () => {
    const states = world.observer.seen.slice(since).filter(({ topic }) => /\/app\/[^/]+$/.test(topic))
    return states.length === world.hub.apps.size
  })
  const rest = world.observer.seen.slice(since).filter(({ topic }) => topic.startsWith('homeassistant/status'))
  expect(rest).toHaveLength(2)
})

test('the counts of a hub and the log level are retained and follow', async () => {
  const world = await start()
  const summary = () => JSON.parse(world.observer.last('hub2mqtt/home/summary') ?? '{}')
  await until('the counts', () => summary().apps === 8)
  expect(summary()).toEqual({ apps: 8, apps_crashed: 1, updates_available: 1 })
  world.hub.crash('com.athom.hue')
  await until('a crash', () => summary().apps_crashed === 2)
  expect(world.observer.last('hub2mqtt/bridge/log-level')).toBe('info')
  await world.ask('bridge/cmd/log-level', 'warn')
  await until('the level', () => world.observer.last('hub2mqtt/bridge/log-level') === 'warn')
})

test('an install shows as progress until it ends, however it ends', async () => {
  const world = await start()
  const topic = 'hub2mqtt/home/app/net.lindqvist.heatpump/update'
  const progress = () => world.observer.texts(topic).map((text) => JSON.parse(text).in_progress)
  world.hub.behave('answer-status', { status: 500, operation: 'installFromAppStore', times: 1 })
  expect((await world.ask('home/app/net.lindqvist.heatpump/cmd/install', '{}')).ok).toBe(false)
  await until('its end', () => progress().length >= 3)
  expect(progress()).toEqual([false, true, false])
  expect((await world.ask('home/app/net.lindqvist.heatpump/cmd/install', '{}')).ok).toBe(true)
  await until('the end', () => /"2.5.0",.*"2.5.0",.*false/.test(world.observer.last(topic) ?? ''))
  expect(JSON.parse(world.observer.last(topic) ?? '')).toEqual({
    title: 'Heat Pump',
    installed_version: '2.5.0',
    latest_version: '2.5.0',
    in_progress: false,
  })
})

test('a switch is refused where either of its commands is', async () => {
  const world = await start({ env: { COMMANDS_DENY: 'disable' } })
  expect((await world.ask(`home/app/${world.app}/cmd/enabled`, 'OFF')).error?.code).toBe('not_allowed')
  const held = await untilDiscovered(world, ALL)
  expect(componentsOf(held.get(HUE))).not.toContain('enabled')
})
