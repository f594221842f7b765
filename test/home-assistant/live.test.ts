/** Tests discovery by the bridge as users run it: the messages on the broker, and when they are published. */
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { encodeId } from '../../src/contract/discovery.ts'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { type RunningBridge, startBridge } from '../support/bridge.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'
import { faultsOf, faultsOfUpdate } from './validate.ts'

const HUB = '5f0c8a1b2d3e4f5061728394'
const HUE = `homeassistant/device/hub2mqtt--${HUB}--com_athom_hue/config`

async function discovered(world: World): Promise<Map<string, string>> {
  const held = await retainedOn(world.broker.port)
  return new Map([...held].filter(([topic]) => /^(homeassistant|elsewhere)\//.test(topic)))
}

/** Waits until everything is published, and returns the discovery messages, which must have `size` topics. */
async function settled(world: World, size = ALL): Promise<Map<string, string>> {
  await world.settle()
  const found = await discovered(world)
  expect([...found.keys()]).toHaveLength(size)
  return found
}

/** The number of devices: the bridge, the hub and its eight apps. */
const ALL = 10
/** A second hub, which has one app. */
function startCabin(): Promise<EmulatedHub> {
  const apps = [{ id: 'com.athom.hue', name: 'Philips Hue' }]
  return EmulatedHub.start({ id: 'cabin', keys: { [KEY]: ALL_SCOPES }, apps, settleMs: 0 })
}
function worldWith({ url }: EmulatedHub): Promise<World> {
  const cabin = `cabin: { url: "${url}", api_key: ${KEY}, poll_interval: 2s, poll_interval_fallback: 1s }`
  return World.start({ file: `hubs: { home: { realtime: true }, ${cabin} }` })
}
const told = (world: World, since: number) =>
  world.observer.seen
    .slice(since)
    .filter(({ topic }) => topic.startsWith('homeassistant/') && topic.endsWith('/config'))
const componentsOf = (payload: string | undefined) => Object.keys(JSON.parse(payload ?? '{}').components ?? {})

test.concurrent.each(['older', 'newer'] as const)(
  'Home Assistant accepts every device of a hub of the %s kind',
  async (flavour) => {
    await using world = await World.start({ hub: { flavour } })
    const held = await settled(world)
    for (const [topic, payload] of held) expect(faultsOf(topic, payload), topic).toEqual([])
    const updates = [...(await retainedOn(world.broker.port))].filter(([topic]) => topic.endsWith('/update'))
    expect(updates).toHaveLength(world.hub.apps.size)
    for (const [topic, payload] of updates) expect(faultsOfUpdate(payload), topic).toEqual([])
    expect(componentsOf(held.get(HUE)).includes('garbage_collect')).toBe(flavour === 'older')
    const hub = componentsOf(held.get(`homeassistant/device/hub2mqtt--${HUB}/config`))
    expect(hub.includes('speak')).toBe(flavour === 'older')
  },
)

test.concurrent('two bridges with different base topics do not overwrite their devices for ever', async () => {
  await using world = await World.start()
  const { observer, bridge: elder } = world
  await settled(world)
  await using younger = startBridge({ ...world.env, MQTT_BASE_TOPIC: 'other' }, undefined, world.clock)
  const errors = ({ lines }: RunningBridge) => lines.filter((line) => line.includes('under this discovery.prefix'))
  await until('the end', () => errors(elder).length > 0, 30_000)
  world.clock.jump(15_000)
  await until('its health', () => observer.last('hub2mqtt/bridge/health')?.includes('publishes the same devices'))
  const isOf = (base: string) => async () =>
    [...(await discovered(world)).values()].every((payload) => payload.includes(`"${base}/bridge/`))
  await until('the devices of the younger', isOf('other'))
  await world.quiet()
  expect(await isOf('other')()).toBe(true)
  expect([errors(elder).length, errors(younger).length]).toEqual([1, 0])
  await younger.stop()
  await world.request('home/cmd/refresh')
  await until('the devices of the elder', isOf('hub2mqtt'))
})

const BY_NAME = 'hub2mqtt---20home'
const objectIds = (held: ReadonlyMap<string, string>) =>
  [...held.keys()].map((topic) => topic.split('/')[2] ?? '').sort()

describe.concurrent('a hub that shows no identity', () => {
  test('has all of its devices by its name, and a restart publishes nothing again', async () => {
    await using world = await World.start({ hub: { flavour: 'reference' } })
    const held = await settled(world)
    for (const [topic, payload] of held) expect(faultsOf(topic, payload), topic).toEqual([])
    expect(objectIds(held)).toEqual(
      [
        'hub2mqtt-bridge---20home',
        BY_NAME,
        ...[...world.hub.apps.keys()].map((id) => `${BY_NAME}--${encodeId(id)}`),
      ].sort(),
    )
    const seen = world.observer.seen.length
    await world.restartUntilReady()
    await settled(world)
    expect(told(world, seen)).toEqual([])
  })

  test('keeps the devices of its identity, and clears those by its name once when it shows an identity again', async () => {
    await using world = await World.start()
    await world.bridge.stop()
    world.hub.behave('no-identity')
    await world.restart()
    // The bridge keeps the devices from the first run (their ids contain the hub's id), as they may be of the same hub.
    const both = objectIds(await settled(world, 2 * ALL))
    expect(both.filter((id) => id.includes('--20home'))).toHaveLength(ALL)
    expect(both.filter((id) => id.includes(HUB))).toHaveLength(ALL)
    const seen = world.observer.seen.length
    world.hub.behave('no-identity', false)
    await world.request('home/cmd/refresh')
    const held = await settled(world)
    expect(objectIds(held).every((id) => id.includes(HUB))).toBe(true)
    const all = told(world, seen)
    expect(all.filter(({ text }) => text === '')).toHaveLength(ALL)
  })

  test('has no devices by its name until it has answered', async ({ world }) => {
    const before = await settled(world)
    const seen = world.observer.seen.length
    await world.bridge.stop()
    world.hub.behave('slow-headers', { operation: 'ping', ms: 1_500 })
    await world.restart()
    expect(await settled(world)).toEqual(before)
    expect(told(world, seen)).toEqual([])
  })
})

test.concurrent('a hub that cannot be read loses nothing', async ({ world }) => {
  const before = await settled(world)
  await world.bridge.stop()
  world.hub.behave('answer-status', { status: 500, operation: 'getApps' })
  const seen = world.observer.seen.length
  await world.restart({ DISCOVERY_PREFIX: 'elsewhere' })
  await world.observer.until('the bridge', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
  await world.quiet()
  expect(await discovered(world)).toEqual(before)
  await world.restart()
  await world.observer.until('the bridge', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
  await world.quiet()
  expect(told(world, seen)).toEqual([])
  world.hub.behaveWell()
  await world.ready()
  expect(await settled(world)).toEqual(before)
})

test.concurrent('a hub with a new name or base topic keeps its devices', async ({ world }) => {
  const before = await settled(world)
  await world.restart({ HUB_NAME: 'attic', MQTT_BASE_TOPIC: 'other/base' })
  await world.settle('attic')
  const after = await discovered(world)
  expect(after.get(HUE)).toContain('other/base/attic/app/com.athom.hue')
  expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
})

test.concurrent('the first of two hubs keeps its devices and that of the bridge when it is renamed, even before it answers', async () => {
  await using cabin = await startCabin()
  const named = (name: string) =>
    `hubs: { ${name}: { url: "${cabin.url}", api_key: ${KEY}, timeout: 1s }, home: { realtime: true } }`
  await using world = await World.start({ file: named('cabin') })
  const held = [...(await settled(world, ALL + 2)).keys()].sort()
  expect(held).toContain('homeassistant/device/hub2mqtt-bridge--cabin/config')
  world.bridge.reload(named('attic'))
  await world.settle('attic')
  const lights = 'homeassistant/device/hub2mqtt--cabin--com_athom_hue/config'
  expect(world.observer.last(lights)).toContain('hub2mqtt/attic/app/com.athom.hue')
  cabin.behave('never-answer')
  world.bridge.reload(named('loft'))
  await until('the removal', () => world.observer.last('hub2mqtt/attic/state') === '')
  for (const _ of [1, 2]) {
    world.clock.jump(20_000)
    await world.settle()
  }
  expect([...(await discovered(world)).keys()].sort()).toEqual(held)
  expect(told(world, 0).filter(({ text }) => text === '')).toEqual([])
  world.bridge.reload('hubs: { home: { realtime: true } }')
  await until('no device of the removed hub', async () => {
    world.clock.jump(20_000)
    return [...(await discovered(world)).keys()].every((topic) => topic.includes(HUB))
  })
  await settled(world, ALL)
})

test.concurrent('a removed hub whose name another hub has loses its devices, even if a third hub never answers', async () => {
  await using cabin = await startCabin()
  await using another = await EmulatedHub.start({ id: 'another', keys: { [KEY]: ALL_SCOPES }, apps: [], settleMs: 0 })
  const rest = `loft: { url: "http://127.0.0.1:1", api_key: ${KEY} }, home: { realtime: true } }`
  const named = ({ url }: EmulatedHub) => `hubs: { attic: { url: "${url}", api_key: ${KEY} }, ${rest}`
  await using world = await World.start({ file: named(cabin) })
  const isThere = async () => [...(await discovered(world)).keys()].some((topic) => topic.includes('hub2mqtt--cabin'))
  await until('its devices', isThere)
  world.bridge.reload(`hubs: { ${rest}`)
  await until('the removal', () => world.observer.last('hub2mqtt/attic/state') === '')
  world.clock.jump(20_000)
  expect(await isThere()).toBe(true)
  world.bridge.reload(named(another))
  await until('the end of its devices', async () => {
    world.clock.jump(20_000)
    return !(await isThere())
  })
})

test.concurrent('apps lose the name of their hub when another hub is removed that has never answered', async () => {
  await using world = await World.start({ file: 'hubs: { home: { realtime: true } }' })
  const before = await settled(world)
  world.bridge.reload(`hubs: { home: { realtime: true }, cabin: { url: "http://127.0.0.1:9", api_key: ${KEY} } }`)
  expect(JSON.parse((await settled(world)).get(HUE) ?? '').device.name).toBe('Lumen Lights (Home)')
  world.bridge.reload('hubs: { home: { realtime: true } }')
  expect(await settled(world)).toEqual(before)
})

describe.concurrent('a hub that was replaced while the bridge was stopped', () => {
  /** Returns the discovery messages after the first `since`, as `clear` or `publish` with the id of their hub. */
  const steps = (world: World, since: number) =>
    told(world, since).map(({ topic, text }) => `${text === '' ? 'clear' : 'publish'} ${idIn(topic)}`)
  const idIn = (topic: string) => /hub2mqtt(?:-bridge)?--([^-/]+)/.exec(topic)?.[1]

  test.each(['lacks an app', 'has the same apps'])(
    'gets its devices after those of the former hub are cleared, if it %s',
    async (difference) => {
      await using world = await World.start()
      await settled(world)
      await world.bridge.stop()
      await world.hub.reboot({ id: 'another' })
      // The bridge reads the list twice if apps of the former hub are missing from it.
      if (difference === 'lacks an app') world.hub.uninstall('com.parkstreet.weather')
      world.hub.behave('slow-headers', { operation: 'getApps', ms: 500 })
      const seen = world.observer.seen.length
      await world.restartUntilReady()
      await world.observer.until('the end of the former hub', () => world.observer.last(HUE) === '')
      await world.observer.until('the new devices', () => steps(world, seen).includes('publish another'))
      await world.quiet()
      const all = steps(world, seen)
      expect(new Set(all)).toEqual(new Set([`clear ${HUB}`, 'publish another']))
      expect(all.lastIndexOf(`clear ${HUB}`)).toBeLessThan(all.indexOf('publish another'))
    },
  )

  test('waits a minute at most while a hub is offline that may be the former one', async () => {
    const offline = `cabin: { url: "http://127.0.0.1:9", api_key: ${KEY} }`
    await using world = await World.start({ file: `hubs: { home: { realtime: true }, ${offline} }` })
    await settled(world)
    await world.bridge.stop()
    await world.hub.reboot({ id: 'another' })
    const seen = world.observer.seen.length
    await world.restartUntilReady()
    await world.request('home/cmd/refresh')
    expect(steps(world, seen)).toEqual([])
    for (let ms = 0; ms < 60_000; ms += 6_000) {
      world.clock.jump(6_000)
      await world.request('bridge/cmd/ping')
    }
    await settled(world, 2 * ALL - 1)
    expect(new Set(steps(world, seen))).toEqual(new Set(['publish another']))
  })

  test('waits for no hub that has only got another name', async () => {
    await using cabin = await startCabin()
    await using world = await worldWith(cabin)
    await settled(world, ALL + 2)
    await world.bridge.stop()
    await Promise.all([world.hub.reboot({ id: 'another' }), cabin.reboot({ id: HUB })])
    const seen = world.observer.seen.length
    await world.restartUntilReady()
    await world.settle('cabin')
    await settled(world, ALL + 2)
    const cleared = told(world, seen).filter(({ text }) => text === '')
    expect(cleared.map(({ topic }) => topic)).not.toContain(HUE)
  })
})

test.concurrent('two hubs that exchange their addresses have their own devices, which command only their own hub', async () => {
  await using cabin = await startCabin()
  await using world = await worldWith(cabin)
  await settled(world, ALL + 2)
  /** Returns the hubs in the command topics of a hub's devices. */
  const commanded = (held: ReadonlyMap<string, string>, id: string) =>
    new Set(
      [...held]
        .filter(([topic]) => topic.startsWith(`homeassistant/device/hub2mqtt--${id}`))
        .flatMap(([, payload]) => [...payload.matchAll(/"command_topic":"hub2mqtt\/(\w+)\//g)].map(([, hub]) => hub)),
    )
  await Promise.all([world.hub.reboot({ id: 'cabin' }), cabin.reboot({ id: HUB })])
  const says = (name: string, id: string) =>
    world.observer.until(name, () => world.observer.last(`hub2mqtt/${name}/info`)?.includes(`"id":"${id}"`))
  await Promise.all([says('home', 'cabin'), says('cabin', HUB)])
  await world.settle('cabin')
  const after = await settled(world, ALL + 2)
  expect(commanded(after, 'cabin')).toEqual(new Set(['home']))
  expect(commanded(after, HUB)).toEqual(new Set(['cabin']))
})

test.concurrent('the bridge keeps its device when a restart finds another hub first', async () => {
  await using cabin = await startCabin()
  await using world = await worldWith(cabin)
  await settled(world, ALL + 2)
  await world.bridge.stop()
  await Promise.all([world.hub.reboot({ id: 'cabin' }), cabin.reboot({ id: HUB })])
  // The first hub answers first, but the device has the id of the other one.
  cabin.behave('slow-headers', { operation: 'ping', ms: 1_500 })
  const seen = world.observer.seen.length
  await world.restartUntilReady()
  await world.settle('cabin')
  expect(objectIds(await settled(world, ALL + 2))).toContain(`hub2mqtt-bridge--${HUB}`)
  expect(told(world, seen).filter(({ topic }) => topic.includes('hub2mqtt-bridge--'))).toEqual([])
})

test.concurrent('an update of an unknown version is distinguished from the previous one, also by a bridge that restarts', async () => {
  await using world = await World.start({ hub: { flavour: 'newer' } })
  const app = 'com.athom.hue'
  const latest = () => JSON.parse(world.observer.last(`hub2mqtt/home/app/${app}/update`) ?? '{}').latest_version
  // Advance the clock in small steps, because the bridge would reconnect after a long step.
  const anotherMinute = async () => {
    for (let steps = 0; steps < 6; steps += 1) await world.quiet()
  }
  const offer = async (updateAvailable: true | null) => {
    world.hub.change(app, { updateAvailable })
    await world.settle()
    return latest()
  }
  const first = await offer(true)
  expect(first).toMatch(/^newer version, found \d{4}-\d\d-\d\d \d\d:\d\d UTC$/)
  await anotherMinute()
  await world.settle()
  expect(latest()).toBe(first)
  await world.restartUntilReady()
  await world.settle()
  expect(latest()).toBe(first)
  expect(await offer(null)).not.toMatch(/found/)
  await anotherMinute()
  const second = await offer(true)
  expect(second).toMatch(/^newer version, found /)
  expect(second).not.toBe(first)
})

test.concurrent('links to the page are added and removed with its address, while the bridge runs', async () => {
  // Without this option, the token would be stored in the current folder.
  const HTTP_TOKEN_FILE = join(temporaryFolder(), 'token')
  await using world = await World.start({
    env: { HTTP_ENABLED: 'true', HTTP_PORT: '0', HTTP_TOKEN_FILE },
    file: 'http: {}\n',
  })
  const links = async () =>
    [...(await settled(world)).values()].map((payload) => JSON.parse(payload).device.configuration_url)
  // Only the hub's device has a link, which leads to the hub's own page.
  expect((await links()).filter((link) => link !== undefined)).toEqual([world.hub.url])
  world.bridge.reload('http: { public_url: "https://home.example.org/hub2mqtt" }\n')
  expect((await links()).filter((link) => link?.startsWith('https://home.example.org/hub2mqtt/#/'))).toHaveLength(
    ALL - 1,
  )
  world.bridge.reload('http: {}\n')
  expect((await links()).filter((link) => link !== undefined)).toEqual([world.hub.url])
})

test.concurrent('the entities of settings follow a permission that a reload changes', async () => {
  const publish = 'settings: { publish: { com.athom.hue: { mode: text } } }\n'
  await using world = await World.start({ file: publish })
  const hasSetting = async () => componentsOf((await settled(world)).get(HUE)).includes('setting_mode')
  expect(await hasSetting()).toBe(true)
  world.bridge.reload(`${publish}commands: { deny: [set-setting] }\n`)
  await until('no setting', async () => !(await hasSetting()))
  world.bridge.reload(publish)
  await until('the setting', hasSetting)
})

test.concurrent('if triggers are off, there are none, and everything else stays', async ({ world }) => {
  const before = componentsOf((await settled(world)).get(HUE))
  await world.restartUntilReady({ DISCOVERY_TRIGGERS: 'false' })
  const after = componentsOf((await settled(world)).get(HUE))
  expect(before.filter((key) => !after.includes(key))).toEqual([
    ...['trigger_crashed', 'trigger_updated', 'trigger_command_failed'],
  ])
})
