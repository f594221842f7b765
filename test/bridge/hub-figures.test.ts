import pino from 'pino'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { Evidence } from '../../src/bridge/evidence.ts'
import { FormerHubs } from '../../src/bridge/former.ts'
import type { GuardInput } from '../../src/bridge/guarding.ts'
import { HubFigures } from '../../src/bridge/hub-figures.ts'
import { bootOf, hasMoved, healthOf, uptimeOf } from '../../src/bridge/hub-health.ts'
import { limitLargeReads } from '../../src/bridge/hub-state.ts'
import { HUB_HEALTH, type HubHealth } from '../../src/contract/crash.ts'
import { APP_LINKS } from '../../src/contract/schemas.ts'
import type { EmulatedHub, EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { emulate, hold, listed } from '../hub/support.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { ALL_SCOPES, KEY, World } from '../support/world.ts'

const SYSTEM = 'hub.system.readonly'
const LINKS = ['hub.device.readonly', 'hub.flow.readonly']
const HUE = 'com.athom.hue'
const MINUTE_MS = 60_000
const HEALTH_READS = [
  'getInfo',
  'getMemoryInfo',
  'getStorageInfo',
  'getOptionLastSuccessfulBackup',
  'getUpdates',
] as const
const LINK_READS = ['getDevices', 'getFlows', 'getAdvancedFlows'] as const

/** Opens an emulated hub and its figures. They share a clock, which stops while a request is in progress. */
async function open(scopes: readonly string[], options: EmulatedHubOptions = {}) {
  const clock = new FakeClock()
  const hubClock = { ...systemClock, now: clock.now, elapsed: clock.elapsed }
  const setScopes = (more: readonly string[]) => emulated.setKeys({ key: [...ALL_SCOPES, ...more] })
  const emulated = await emulate({ flavour: 'older', clock: hubClock, ...options, keys: { key: ALL_SCOPES } })
  setScopes(scopes)
  const never = 24 * 60 * MINUTE_MS
  const polls = { realtime: false, pollInterval: never, pollIntervalFallback: never }
  const watched = hold(emulated.url, polls, { clock })
  const { hub } = watched
  await listed(watched)
  const published: (HubHealth | null | undefined)[] = []
  const facts: GuardInput[] = []
  const lines: string[] = []
  const begin = () => {
    const figures = new HubFigures('home', hub, {
      guardian: {
        factsOf: () => undefined,
        attentionOf: () => undefined,
        goneAppsOf: () => undefined,
        hubReplaced: () => {},
        take: (_, fact) => void facts.push(fact),
      },
      upkeep: { request: () => {}, listRead: () => {}, former: new FormerHubs() },
      evidence: new Evidence(clock, pino({ level: 'silent' })),
      largeReads: limitLargeReads(clock),
      clock,
      log: pino({}, { write: (line: string) => void lines.push(line) }),
      state: { changed: () => void published.push(figures.health), appChanged: () => {} },
    })
    hub.subscribe(() => figures.changed())
    hub.apps.subscribe(({ read }) => read && figures.changed())
    figures.changed()
    return figures
  }
  const isWaiting = () => hub.isIdle || !hub.status.online || emulated.requests.at(-1)?.status === 429
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      await clock.advance(Math.min(left, 1_000))
      await until('the answer', isWaiting)
    }
  }
  const passUntil = (what: string, is: () => unknown) => until(what, async () => is() || (await pass(1_000)))
  return { ...{ clock, emulated, hub, published, facts, lines, setScopes, begin, pass, passUntil } }
}

type Opened = Awaited<ReturnType<typeof open>>

const asked = ({ emulated }: Pick<Opened, 'emulated'>, names: readonly string[]) =>
  emulated.requests.filter(({ operation = '' }) => names.includes(operation)).map(({ operation }) => operation)
const set = (
  hub: EmulatedHub,
  operation: 'getInfo' | 'getMemoryInfo' | 'getStorageInfo',
  fields: Record<string, unknown>,
) => hub.behave('other-fields', { operation, set: fields })

describe('the health of a hub', () => {
  test('is published after each of its figures was read once, with the values of the hub', async () => {
    const opened = await open([SYSTEM, 'hub.updates.readonly'])
    const { emulated, clock, begin, passUntil } = opened
    set(emulated, 'getInfo', { loadavg: [1.5, 1, 0.5], cpus: [1, 2, 3, 4], uptime: 4711, videoCoreTemperature: 51.26 })
    set(emulated, 'getMemoryInfo', { total: 4e9, free: 1e9 })
    set(emulated, 'getStorageInfo', { total: 8e9, free: 2e9 })
    emulated.behave('wrong-shape', { operation: 'getUpdates', value: [{ version: '13.5.0' }] })
    emulated.behave('wrong-shape', { operation: 'getOptionLastSuccessfulBackup', value: '2026-11-24T09:00:00Z' })
    const figures = begin()
    expect(figures.isPending('hubHealth')).toBe(true)
    await passUntil('the health', () => figures.health)
    expect(figures.isPending('hubHealth')).toBe(false)
    const { booted_at, ...found } = v.parse(HUB_HEALTH, figures.health)
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
      apps_memory_bytes: [...emulated.apps.values()].reduce(
        (sum, { state, usage }) => sum + (state === 'running' ? usage.mem : 0),
        0,
      ),
      undervoltage: false,
      throttled: false,
      uptime_seconds: 4711,
      last_backup_at: '2026-11-24T09:00:00.000Z',
      firmware_update: '13.5.0',
    })
    expect(Math.abs(Date.parse(booted_at ?? '') - (clock.now() - 4_711_000))).toBeLessThan(30_000)
    expect(asked(opened, HEALTH_READS).sort()).toEqual([...HEALTH_READS].sort())
    expect([opened.published, opened.lines]).toEqual([[figures.health], []])
  })

  test('is read once a minute for system and memory, and once an hour for everything else', async () => {
    const opened = await open([SYSTEM, 'hub.updates.readonly'])
    const { begin, pass, passUntil, emulated } = opened
    const figures = begin()
    await passUntil('the health', () => figures.health)
    emulated.forgetRequests()
    await pass(10 * MINUTE_MS)
    const count = (name: string) => asked(opened, [name]).length
    expect([count('getInfo'), count('getMemoryInfo')]).toEqual([10, 10])
    expect(asked(opened, HEALTH_READS.slice(2))).toEqual([])
    await pass(51 * MINUTE_MS)
    for (const name of HEALTH_READS.slice(2)) expect(count(name), name).toBe(1)
  })

  test.each([
    ['403', 'answer-status', { status: 403 }],
    ['missing_api_method', 'missing-api-method', {}],
    ['JSON of another shape', 'wrong-shape', {}],
    ['an object without fields', 'wrong-shape', { value: {} }],
  ] as const)('has null only for data that a hub answers with %s', async (_, behaviour, options) => {
    const opened = await open([SYSTEM, 'hub.updates.readonly', ...LINKS])
    const { emulated, hub, begin, pass, passUntil } = opened
    for (const operation of ['getMemoryInfo', 'getStorageInfo', 'getUpdates', 'getDevices'] as const)
      emulated.behave(behaviour, { ...options, operation })
    const figures = begin()
    await passUntil('the health', () => figures.health)
    const found = v.parse(HUB_HEALTH, figures.health)
    const unknown = Object.entries(found).filter(([, value]) => value === null)
    expect(unknown.map(([key]) => key)).toEqual([
      'storage_total_bytes',
      'storage_free_bytes',
      'last_backup_at',
      'firmware_update',
    ])
    // The total memory is still known, because `getInfo` reports it as well.
    expect(found.memory_total_bytes).toBeGreaterThan(0)
    const links = v.parse(APP_LINKS, figures.links.get(HUE))
    expect(links).toMatchObject('value' in options ? { devices: 0 } : { devices: null, devices_unavailable: null })
    expect(links.flows).toBeGreaterThan(0)
    emulated.forgetRequests()
    await pass(2 * MINUTE_MS)
    expect(asked(opened, ['getInfo', 'getApps'])).toEqual(['getInfo', 'getInfo'])
    expect(hub.status.online).toBe(true)
  })

  test('is not published if the hub denies it to a key whose scopes are unknown', async () => {
    const opened = await open([], { flavour: 'reference' })
    const figures = opened.begin()
    await opened.pass(20_000)
    expect(asked(opened, HEALTH_READS)).toEqual(['getInfo'])
    expect([figures.health, opened.published]).toEqual([undefined, []])
  })

  test('is published again at the next minute if a figure moved by a tenth or a flag changed, otherwise after 15 minutes', async () => {
    const steady = { loadavg: [1, 1, 1], videoCoreTemperature: 50, freemem: 1e9 }
    const { emulated, published, begin, pass, passUntil } = await open([SYSTEM])
    const publishedAfter = async (minutes: number, free: number, more = {}) => {
      set(emulated, 'getInfo', { ...steady, ...more })
      set(emulated, 'getMemoryInfo', { total: 4e9, free })
      await pass(minutes * MINUTE_MS)
      return published.length
    }
    await publishedAfter(0, 1e9)
    const figures = begin()
    await passUntil('the health', () => figures.health)
    expect(await publishedAfter(5, 1e9)).toBe(1)
    expect(await publishedAfter(2, 1.09e9)).toBe(1)
    expect(await publishedAfter(2, 1.1e9)).toBe(2)
    const low = { videoCoreUndervoltageNow: true }
    expect(await publishedAfter(2, 1.1e9, low)).toBe(3)
    expect(figures.health).toMatchObject({ undervoltage: true, memory_free_bytes: 1.1e9 })
    expect(await publishedAfter(13, 1.1e9, low)).toBe(3)
    expect(await publishedAfter(3, 1.1e9, low)).toBe(4)
  })

  test('distinguishes a hub that has restarted from one that was unreachable', async () => {
    const opened = await open([SYSTEM])
    const { emulated, hub, lines, begin, pass, passUntil } = opened
    const figures = begin()
    await pass(60.5 * MINUTE_MS)
    const booted_at = figures.health?.booted_at
    emulated.behave('reset-before-executing', {})
    await expect(hub.refresh()).rejects.toThrow()
    await passUntil('offline', () => !hub.status.online)
    await pass(10 * MINUTE_MS)
    emulated.behaveWell()
    await hub.refresh()
    emulated.forgetRequests()
    await pass(3 * MINUTE_MS)
    expect(asked(opened, ['getInfo']).length).toBeGreaterThan(0)
    expect([figures.health?.booted_at, lines]).toEqual([booted_at, []])
    await emulated.reboot()
    await hub.refresh()
    await passUntil('another boot', () => figures.health?.booted_at !== booted_at)
    expect(lines).toEqual([expect.stringContaining('has restarted')])
  })

  test('is not read while the hub asks for fewer requests', async () => {
    const opened = await open([SYSTEM])
    const { emulated, begin, pass, passUntil } = opened
    const figures = begin()
    await passUntil('the health', () => figures.health)
    emulated.behave('answer-status', { status: 429, retryAfter: 120, operation: 'getInfo', times: 1 })
    await passUntil('the refusal', () => emulated.requests.some(({ status }) => status === 429))
    const before = emulated.requests.length
    await pass(110_000)
    expect(emulated.requests).toHaveLength(before)
    await pass(15_000)
    expect(asked({ emulated }, HEALTH_READS).slice(-2).sort()).toEqual(['getInfo', 'getMemoryInfo'])
  })

  test('is cleared and no longer requested when the key loses the permission, and read when it gets it', async () => {
    const opened = await open([SYSTEM, ...LINKS])
    const { emulated, hub, begin, pass, passUntil, setScopes } = opened
    const figures = begin()
    const areRead = () => figures.health && figures.links.get(HUE)
    await passUntil('both', areRead)
    setScopes([])
    await hub.refresh()
    expect([figures.health, figures.links.get(HUE)]).toEqual([null, null])
    emulated.forgetRequests()
    await pass(70_000)
    expect(asked(opened, [...HEALTH_READS, ...LINK_READS])).toEqual([])
    setScopes([SYSTEM, ...LINKS])
    await hub.refresh()
    await passUntil('both', areRead)
  })
})

describe('the usage of devices and flows', () => {
  test('is read within 15 seconds after the list, and then at most every five minutes; the guardian gets each read', async () => {
    const opened = await open(LINKS)
    const { emulated, facts, begin, pass } = opened
    const figures = begin()
    await pass(15_000)
    expect([...figures.links.keys()].sort()).toEqual([...emulated.apps.keys()].sort())
    const { devices, ...rest } = v.parse(APP_LINKS, figures.links.get(HUE))
    expect(devices).toBeGreaterThan(0)
    expect(rest).toMatchObject({ devices_unavailable: 0, flows_broken: 0, flows: expect.any(Number) })
    emulated.forgetRequests()
    emulated.setDevices(HUE, 'away')
    await pass(4 * MINUTE_MS)
    expect(asked(opened, LINK_READS)).toEqual([])
    await pass(MINUTE_MS + 30_000)
    expect(asked(opened, [...LINK_READS, ...HEALTH_READS])).toEqual([...LINK_READS])
    // The guardian also gets a read that is the same as the one before.
    await pass(5 * MINUTE_MS)
    const links = facts.flatMap((fact) => (fact.kind === 'links' ? [fact.links.get(HUE)] : [])).filter((one) => one)
    expect(links.map((one) => one?.devices_unavailable)).toEqual([0, devices, devices])
  })

  test('has null for flows if the key permits devices only', async () => {
    const { begin, pass } = await open(LINKS.slice(0, 1))
    const figures = begin()
    await pass(15_000)
    expect(figures.links.get(HUE)).toMatchObject({ devices: expect.any(Number), flows: null, flows_broken: null })
  })

  test.each([
    [500, { devices: null, devices_unavailable: null, flows: null, flows_broken: null }],
    [403, null],
  ])('is unknown if the hub fails to report it, and missing if the hub refuses (%i)', async (status, links) => {
    const { emulated, begin, pass } = await open(LINKS.slice(0, 1))
    emulated.behave('answer-status', { status, operation: 'getDevices' })
    const figures = begin()
    await pass(15_000)
    expect(figures.links.get(HUE) ?? null).toEqual(links)
  })
})

test('health and links are published, in metrics too, and kept with the time of the boot over a restart of the bridge', async () => {
  const port = await freePort()
  const env = { HTTP_ENABLED: 'true', HTTP_PORT: String(port) }
  await using world = await World.start({ env, hub: { keys: { [KEY]: [...ALL_SCOPES, SYSTEM, ...LINKS] } } })
  const { hub, observer, clock } = world
  const [HEALTH, DEVICES] = ['hub2mqtt/home/health', `hub2mqtt/home/app/${HUE}/links`]
  const info = { loadavg: [1.5, 1, 0.5], videoCoreTemperature: 51, videoCoreUndervoltage: true }
  set(hub, 'getInfo', { ...info, uptime: 5_000 })
  set(hub, 'getMemoryInfo', { total: 4e9, free: 1e9 })
  await world.restart()
  const health = () => v.parse(HUB_HEALTH, JSON.parse(observer.last(HEALTH) ?? '{}'))
  const isPublished = () => observer.last(HEALTH)?.includes('"load_1m":1.5')
  const untilTrue = (what: string, is: () => unknown) =>
    until(what, () => {
      clock.jump(100)
      return is()
    })
  await untilTrue('the health', () => isPublished() && observer.last(DEVICES))
  expect(v.parse(APP_LINKS, JSON.parse(observer.last(DEVICES) ?? '')).devices).toBeGreaterThan(0)
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
  const { booted_at } = health()
  set(hub, 'getInfo', { ...info, uptime: 5_012 })
  await world.restart()
  await untilTrue('the next health', () => health().uptime_seconds === 5_012)
  expect(health().booted_at).toBe(booted_at)
  for (const topic of [HEALTH, DEVICES]) expect(observer.texts(topic)).not.toContain('')
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
