import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { bootOf, hasMoved, healthOf, uptimeOf } from '../../src/bridge/hub-health.ts'
import { HUB_HEALTH, type HubHealth } from '../../src/contract/crash.ts'
import { APP_LINKS } from '../../src/contract/schemas.ts'
import type { EmulatedHub } from '../../src/emulator/hub.ts'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World, type WorldOptions } from '../support/world.ts'

const SYSTEM = 'hub.system.readonly'
const LINKS = ['hub.device.readonly', 'hub.flow.readonly']
const HUE = 'com.athom.hue'
const TOPIC = 'hub2mqtt/home/health'
const MINUTE_MS = 60_000
const HEALTH_READS = [
  'getInfo',
  'getMemoryInfo',
  'getStorageInfo',
  'getOptionLastSuccessfulBackup',
  'getUpdates',
] as const
const LINK_READS = ['getDevices', 'getFlows', 'getAdvancedFlows'] as const

/** @param prepare called before the key gets `scopes`, because the bridge reads the figures soon after that */
async function start(
  scopes: readonly string[],
  { env, hub, ...options }: WorldOptions = {},
  prepare?: (world: World) => void,
): Promise<World> {
  // Avoid delays of 40 ms for small packets, because `elapse` sends one for each second of the clock.
  const broker = mosquittoPath === undefined ? 'aedes' : await Mosquitto.start({ config: ['set_tcp_nodelay true'] })
  const keys = { [KEY]: [...ALL_SCOPES, ...scopes] }
  let shared: Clock = systemClock
  const clock = { ...systemClock, now: () => shared.now(), elapsed: () => shared.elapsed() }
  const world = await World.start({
    broker,
    ...options,
    // Without jitter, the list is read exactly an hour after the realtime channel connects.
    random: () => 0,
    // The time limit is long, because the clock may advance while a request to the hub is pending.
    env: { HUB_POLL_INTERVAL: '1h', HUB_POLL_INTERVAL_FALLBACK: '1h', HUB_TIMEOUT: '10m', ...env },
    hub: { ...hub, clock, keys: prepare ? { [KEY]: ALL_SCOPES } : keys },
  })
  shared = world.clock
  if (prepare === undefined) return world
  prepare(world)
  world.hub.setKeys(keys)
  expect((await world.request('home/cmd/refresh')).ok).toBe(true)
  return world
}
const asked = ({ requests }: EmulatedHub, names: readonly string[]) =>
  requests.filter(({ operation = '' }) => names.includes(operation)).map(({ operation }) => operation)

/** Advances the clock a second at a time, and waits for the broker, so that the connection does not time out. */
async function elapse({ clock, observer }: World, ms: number, each?: () => Promise<unknown>): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    clock.jump(Math.min(left, 1_000))
    await each?.()
    await observer.publish('a second', '')
  }
}

function pass(world: World, ms: number): Promise<void> {
  return elapse(world, ms, () => until('answers', () => world.hub.requests.every(({ status }) => status !== undefined)))
}

const health = ({ observer }: World): HubHealth | undefined => {
  const text = observer.last(TOPIC)
  return text === undefined || text === '' ? undefined : JSON.parse(text)
}
const first = async (world: World): Promise<HubHealth> => {
  await until('the first health', async () => {
    if (health(world) === undefined) await pass(world, 1_000)
    return health(world) !== undefined
  })
  return v.parse(HUB_HEALTH, health(world))
}
const links = ({ observer }: World, app = HUE) => {
  const text = observer.last(`hub2mqtt/home/app/${app}/links`)
  return text === undefined || text === '' ? undefined : v.parse(APP_LINKS, JSON.parse(text))
}
const set = (
  world: World,
  operation: 'getInfo' | 'getMemoryInfo' | 'getStorageInfo',
  fields: Record<string, unknown>,
) => world.hub.behave('other-fields', { operation, set: fields })

describe.concurrent('the health of a hub', () => {
  test('is published after each of its figures was read once, with the values of the hub', async () => {
    await using world = await start([SYSTEM, 'hub.updates.readonly'], {}, (world) => {
      set(world, 'getInfo', { loadavg: [1.5, 1, 0.5], cpus: [1, 2, 3, 4], uptime: 4711, videoCoreTemperature: 51.26 })
      set(world, 'getMemoryInfo', { total: 4e9, free: 1e9 })
      set(world, 'getStorageInfo', { total: 8e9, free: 2e9 })
      world.hub.behave('wrong-shape', { operation: 'getUpdates', value: [{ version: '13.5.0' }] })
      world.hub.behave('wrong-shape', { operation: 'getOptionLastSuccessfulBackup', value: '2026-11-24T09:00:00Z' })
    })
    const { booted_at, ...found } = await first(world)
    expect(found).toEqual({
      memory_total_bytes: 4e9,
      memory_free_bytes: 1e9,
      load_1m: 1.5,
      load_5m: 1,
      load_15m: 0.5,
      cpus: 4,
      temperature_celsius: 51.3,
      storage_total_bytes: 8e9,
      storage_free_bytes: 2e9,
      apps_memory_bytes: [...world.hub.apps.values()].reduce(
        (sum, { state, usage }) => sum + (state === 'running' ? usage.mem : 0),
        0,
      ),
      undervoltage: false,
      throttled: false,
      uptime_seconds: 4711,
      last_backup_at: '2026-11-24T09:00:00.000Z',
      firmware_update: '13.5.0',
    })
    expect(Math.abs(Date.parse(booted_at ?? '') - (world.clock.now() - 4_711_000))).toBeLessThan(30_000)
    expect(asked(world.hub, HEALTH_READS).sort()).toEqual([...HEALTH_READS].sort())
    expect(world.observer.texts(TOPIC)).toHaveLength(1)
    expect(world.bridge.lines.filter((line) => line.includes('has restarted'))).toEqual([])
  })

  test('is read once a minute for system and memory, and once an hour for everything else', async () => {
    await using world = await start([SYSTEM, 'hub.updates.readonly'])
    await first(world)
    world.hub.forgetRequests()
    await pass(world, 10 * MINUTE_MS)
    const count = (name: string) => asked(world.hub, [name]).length
    for (const name of ['getInfo', 'getMemoryInfo']) {
      expect(count(name)).toBeGreaterThanOrEqual(9)
      expect(count(name)).toBeLessThanOrEqual(10)
    }
    expect(asked(world.hub, HEALTH_READS.slice(2))).toEqual([])
    world.clock.jump(50 * MINUTE_MS)
    await pass(world, MINUTE_MS)
    for (const name of HEALTH_READS.slice(2)) expect(count(name), name).toBe(1)
  })

  test.each([
    ['403', 'answer-status', { status: 403 }],
    ['missing_api_method', 'missing-api-method', {}],
    ['JSON of another shape', 'wrong-shape', {}],
    ['an object without fields', 'wrong-shape', { value: {} }],
  ] as const)('has null only for data that a hub answers with %s', async (_, behaviour, options) => {
    await using world = await start([SYSTEM, 'hub.updates.readonly', ...LINKS], {}, ({ hub }) => {
      for (const operation of ['getMemoryInfo', 'getStorageInfo', 'getUpdates', 'getDevices'] as const) {
        hub.behave(behaviour, { ...options, operation })
      }
    })
    const found = await first(world)
    const unknown = Object.entries(found).filter(([, value]) => value === null)
    expect(unknown.map(([key]) => key)).toEqual([
      'storage_total_bytes',
      'storage_free_bytes',
      'last_backup_at',
      'firmware_update',
    ])
    // The total memory is still known, because `getInfo` reports it as well.
    expect(found.memory_total_bytes).toBeGreaterThan(0)
    expect(links(world)).toMatchObject(
      'value' in options ? { devices: 0 } : { devices: null, devices_unavailable: null },
    )
    expect(links(world)?.flows).toBeGreaterThan(0)
    // Wait, because on a busy machine the realtime channel may connect late.
    await until('the realtime channel', async () => {
      await pass(world, 1_000)
      return world.observer.last('hub2mqtt/home/info')?.includes('"realtime":"connected"')
    })
    world.hub.forgetRequests()
    await pass(world, 2 * MINUTE_MS)
    expect(asked(world.hub, ['getInfo'])).not.toHaveLength(0)
    expect(asked(world.hub, ['getApps'])).toHaveLength(0)
    expect(world.observer.last('hub2mqtt/home/state')).toBe('online')
  })

  test('is not published if the hub denies it to a key whose scopes are unknown', async () => {
    await using world = await start([], { hub: { flavour: 'reference' } })
    await pass(world, 20_000)
    expect(asked(world.hub, HEALTH_READS)).toEqual(['getInfo'])
    expect(health(world)).toBeUndefined()
  })

  test('is published again at the next minute if a figure moved by a tenth or a flag changed, otherwise after 15 minutes', async () => {
    const steady = { loadavg: [1, 1, 1], videoCoreTemperature: 50, freemem: 1e9 }
    await using world = await start([SYSTEM], {}, (world) => {
      set(world, 'getInfo', steady)
      set(world, 'getMemoryInfo', { total: 4e9, free: 1e9 })
    })
    await first(world)
    const published = () => world.observer.texts(TOPIC).length
    await pass(world, 5 * MINUTE_MS)
    expect(published()).toBe(1)
    set(world, 'getMemoryInfo', { total: 4e9, free: 1.09e9 })
    await pass(world, 2 * MINUTE_MS)
    expect(published()).toBe(1)
    set(world, 'getMemoryInfo', { total: 4e9, free: 1.1e9 })
    await pass(world, 2 * MINUTE_MS)
    await until('the moved figure', () => published() === 2)
    set(world, 'getInfo', { ...steady, videoCoreUndervoltageNow: true })
    await pass(world, 2 * MINUTE_MS)
    await until('the flag', () => published() === 3)
    expect(health(world)).toMatchObject({ undervoltage: true, memory_free_bytes: 1.1e9 })
    await pass(world, 13 * MINUTE_MS)
    expect(published()).toBe(3)
    await pass(world, 3 * MINUTE_MS)
    await until('the repetition', () => published() === 4)
  }, 60_000)

  test('distinguishes a hub that has restarted from one that was unreachable', async () => {
    await using world = await start([SYSTEM])
    const state = (wanted: string) =>
      until(wanted, async () => {
        await elapse(world, 1_000)
        return world.observer.last('hub2mqtt/home/state') === wanted
      })
    // Stop the clock between two reads: an answer that arrives while the clock advances would look like a new boot.
    await pass(world, 60.5 * MINUTE_MS)
    const { booted_at } = await first(world)
    world.hub.behave('reset-before-executing', {})
    world.hub.dropRealtime('cut')
    await state('offline')
    await elapse(world, 10 * MINUTE_MS)
    world.hub.behaveWell()
    // Forget the interrupted requests, which will never be answered.
    world.hub.forgetRequests()
    await state('online')
    const before = asked(world.hub, ['getInfo']).length
    await pass(world, 3 * MINUTE_MS)
    expect(asked(world.hub, ['getInfo']).length).toBeGreaterThan(before)
    expect(health(world)?.booted_at).toBe(booted_at)
    expect(world.bridge.lines.filter((line) => line.includes('has restarted'))).toEqual([])
    await world.hub.reboot()
    await state('online')
    await until('another boot', async () => {
      await pass(world, 5_000)
      return health(world)?.booted_at !== booted_at
    })
    expect(world.bridge.lines.filter((line) => line.includes('has restarted'))).toHaveLength(1)
  }, 60_000)

  test('keeps the time of the boot over a restart of the bridge, although each reading differs slightly', async () => {
    await using world = await start([SYSTEM], {}, (world) => set(world, 'getInfo', { uptime: 5_000 }))
    const { booted_at } = await first(world)
    set(world, 'getInfo', { uptime: 5_012 })
    await world.restart()
    await until('the health', async () => {
      await pass(world, 1_000)
      return health(world)?.uptime_seconds === 5_012
    })
    expect(health(world)?.booted_at).toBe(booted_at)
  })

  test('is not read while the hub asks for fewer requests', async () => {
    await using world = await start([SYSTEM])
    await first(world)
    world.hub.behave('answer-status', { status: 429, retryAfter: 120, operation: 'getInfo', times: 1 })
    await until('the refusal', async () => {
      await pass(world, 1_000)
      return world.hub.requests.some(({ status }) => status === 429)
    })
    world.hub.forgetRequests()
    await pass(world, 110_000)
    expect(asked(world.hub, HEALTH_READS)).toEqual([])
    await pass(world, 15_000)
    const isRead = (name: string) => asked(world.hub, HEALTH_READS).some((one) => one === name)
    await until('both reads', () => isRead('getInfo') && isRead('getMemoryInfo'))
  })

  test('is cleared and no longer requested when the key loses the permission, and read when it gets it', async () => {
    await using world = await start([SYSTEM, ...LINKS])
    await first(world)
    await until('links', () => links(world) !== undefined)
    world.hub.setKeys({ [KEY]: ALL_SCOPES })
    expect((await world.request('home/cmd/refresh')).ok).toBe(true)
    await world.observer.until('clearing', () => world.observer.last(TOPIC) === '')
    await world.observer.until('clearing', () => world.observer.last(`hub2mqtt/home/app/${HUE}/links`) === '')
    world.hub.forgetRequests()
    await pass(world, 70_000)
    expect(asked(world.hub, [...HEALTH_READS, ...LINK_READS])).toEqual([])
    world.hub.setKeys({ [KEY]: [...ALL_SCOPES, SYSTEM, ...LINKS] })
    expect((await world.request('home/cmd/refresh')).ok).toBe(true)
    await first(world)
    await until('links', () => links(world) !== undefined)
  })
})

describe.concurrent('the usage of devices and flows', () => {
  function counted(records: Record<string, { driverUri?: string; trigger?: { uri: string } }>, app = HUE) {
    return Object.values(records).filter((one) => [one.driverUri, one.trigger?.uri].includes(`homey:app:${app}`)).length
  }
  const read = async ({ hub }: World, path: string) => {
    const answer: Response = await fetch(`${hub.url}/api/manager/${path}`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    const records: Record<string, { driverUri?: string; trigger?: { uri: string } }> = JSON.parse(await answer.text())
    return records
  }

  test('is published within 15 seconds of the list, and then read at most every five minutes', async () => {
    await using world = await start(LINKS)
    await pass(world, 15_000)
    await until('links', () => [...world.hub.apps.keys()].every((app) => links(world, app) !== undefined))
    const devices = counted(await read(world, 'devices/device'))
    const flows = counted(await read(world, 'flow/flow'))
    expect(devices).toBeGreaterThan(0)
    expect(links(world)).toMatchObject({ devices, devices_unavailable: 0, flows_broken: 0 })
    expect(links(world)?.flows).toBeGreaterThanOrEqual(flows)
    world.hub.forgetRequests()
    world.hub.setDevices(HUE, 'away')
    await pass(world, 4 * MINUTE_MS)
    expect(asked(world.hub, LINK_READS)).toEqual([])
    await pass(world, 90_000)
    expect(asked(world.hub, LINK_READS)).toEqual([...LINK_READS])
    await until('the devices that are away', () => links(world)?.devices_unavailable === devices)
    expect(asked(world.hub, HEALTH_READS)).toEqual([])
  })

  test('is passed to the guardian after each read, also if the devices are unavailable as before', async () => {
    const env = { GUARD_WATCH: HUE }
    const file = `guard: { unavailable: { ${HUE}: { devices: all, for: 8m } } }\n`
    await using world = await start([SYSTEM, ...LINKS], { env, file })
    await pass(world, 15_000)
    await until('links', () => links(world) !== undefined)
    world.hub.setDevices(HUE, 'away')
    await pass(world, 10 * MINUTE_MS)
    expect(asked(world.hub, ['restartApp'])).toEqual([])
    await pass(world, 6 * MINUTE_MS)
    await until('the restart', () => asked(world.hub, ['restartApp']).length === 1)
  })

  test('is kept on the broker after a restart of the bridge until it is read again', async () => {
    await using world = await start([SYSTEM, ...LINKS])
    await first(world)
    await until('links', () => links(world) !== undefined)
    await world.restartUntilReady()
    await pass(world, 30_000)
    for (const topic of [TOPIC, `hub2mqtt/home/app/${HUE}/links`]) {
      expect(world.observer.texts(topic).filter((text) => text === '')).toEqual([])
    }
  })

  test('has null for flows if the key permits devices only', async () => {
    await using world = await start(LINKS.slice(0, 1))
    await pass(world, 15_000)
    await until('links', () => links(world) !== undefined)
    expect(links(world)).toMatchObject({ devices: expect.any(Number), flows: null, flows_broken: null })
  })
})

test.concurrent('metrics have the health of a hub whose key permits it', async () => {
  const port = await freePort()
  const env = { HTTP_ENABLED: 'true', HTTP_PORT: String(port) }
  await using world = await start([SYSTEM], { env }, (world) => {
    set(world, 'getInfo', { loadavg: [1.5, 1, 0.5], videoCoreTemperature: 51, videoCoreUndervoltage: true })
    set(world, 'getMemoryInfo', { total: 4e9, free: 1e9 })
  })
  await first(world)
  const printed = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect((await printed.text()).split('\n')).toEqual(
    expect.arrayContaining([
      'hub2mqtt_hub_memory_free_bytes{hub="home"} 1000000000',
      'hub2mqtt_hub_memory_total_bytes{hub="home"} 4000000000',
      'hub2mqtt_hub_load1{hub="home"} 1.5',
      'hub2mqtt_hub_temperature_celsius{hub="home"} 51',
      'hub2mqtt_hub_undervoltage{hub="home"} 1',
      expect.stringMatching(/^hub2mqtt_hub_boot_time_seconds\{hub="home"\} \d+$/),
    ]),
  )
})

describe('the pure rules', () => {
  const NOTHING = healthOf({}, null, undefined)

  test.each([
    [{ memory_free_bytes: 100 }, { memory_free_bytes: 91 }, false],
    [{ memory_free_bytes: 100 }, { memory_free_bytes: 90 }, true],
    [{ load_1m: 3 }, { load_1m: 3.3 }, true],
    [{ load_1m: 0 }, { load_1m: 0 }, false],
    [{ uptime_seconds: 1 }, { uptime_seconds: 900 }, false],
    [{ uptime_seconds: 1 }, { uptime_seconds: null }, false],
    [{ temperature_celsius: 50 }, { temperature_celsius: null }, true],
    [{ undervoltage: false }, { undervoltage: true }, true],
    [{ firmware_update: '1' }, { firmware_update: '2' }, true],
  ])('from %j to %j the health is published again: %j', (before, after, is) => {
    expect(hasMoved({ ...NOTHING, ...before }, { ...NOTHING, ...after })).toBe(is)
  })

  test('the boot time stays the same while the hub runs, whatever its clock and that of the bridge do', async () => {
    const clock = new FakeClock()
    const start = bootOf(undefined, 1_000, clock)
    expect(start.at).toBe(clock.now() - 1_000_000)
    await clock.advance(60_000)
    const later = bootOf(start, 1_061, clock)
    void clock.step(3_600_000)
    await clock.advance(60_000)
    // This answer is late, and the system clock was set since the previous answer.
    const latest = bootOf(later, 1_110, clock)
    expect([later.at, latest.at]).toEqual([start.at, start.at])
    expect(uptimeOf(later, clock)).toBe(1_121)
    // The uptime is far ahead of the bridge's clock, because the bridge's machine was suspended.
    expect(bootOf(latest, 90_000, clock).at).toBe(start.at)
  })

  test('the boot time changes when the uptime starts again, or is less than the time that has passed', async () => {
    const clock = new FakeClock()
    const start = bootOf(undefined, 100, clock)
    expect(bootOf(start, 20, clock).at).toBe(clock.now() - 20_000)
    await clock.advance(3_600_000)
    expect(bootOf(start, 200, clock).at).toBe(clock.now() - 200_000)
    // After a reboot within a minute, the uptime is already longer than the last reported uptime.
    const first = bootOf(undefined, 10, clock)
    await clock.advance(50_000)
    expect(bootOf(first, 22, clock).at).toBe(clock.now() - 22_000)
  })

  test('an uptime that is cached for hours, or in whole hours, is not a restart', async () => {
    const clock = new FakeClock()
    for (const start of [30, 5_000]) {
      const first = bootOf(undefined, start, clock)
      let boot = first
      for (let minute = 1; minute <= 180; minute += 1) {
        await clock.advance(60_000)
        if (minute % 60 === 0) boot = bootOf(boot, start + minute * 60, clock)
        else boot = bootOf(boot, boot.uptimeSeconds, clock)
        expect(boot.at).toBe(first.at)
      }
      expect(bootOf(boot, 0, clock).at).toBe(clock.now())
    }
  })
})
