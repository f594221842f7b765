import * as v from 'valibot'
import { describe, expect } from 'vitest'
import { Evidence } from '../../src/bridge/evidence.ts'
import { usageHistory } from '../../src/bridge/hub-history.ts'
import { limitLargeReads } from '../../src/bridge/hub-state.ts'
import { CRASH, type Crash, MAX_CRASH_BYTES } from '../../src/contract/crash.ts'
import type { Flavour } from '../../src/emulator/records.ts'
import { type App, patchApp } from '../../src/hub/app.ts'
import { commandOf } from '../guardian/stand.ts'
import { anApp, emulate, hold, listed } from '../hub/support.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { retainedOn } from '../support/observer.ts'
import { silentLog } from '../support/silent-log.ts'
import { until } from '../support/until.ts'
import { KEY, World } from '../support/world.ts'
import { test } from '../support/world-test.ts'

const BROKER = 'mosquitto'
const STACK =
  "TypeError: Cannot read properties of undefined (reading 'lamp')\n    at Lamp.onInit (/app/drivers/lamp.js:12:5)"

const topicOf = (app: string) => `hub2mqtt/home/app/${app}/crash`

/** Returns the published evidence of a crash, and checks that the evidence matches the contract. */
function crashOf(world: World, app: string): Crash | undefined {
  const text = world.observer.last(topicOf(app))
  if (text === undefined || text === '') return undefined
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_CRASH_BYTES)
  return v.parse(CRASH, JSON.parse(text))
}

const untilCrash = (world: World, app: string, is: (crash: Crash) => boolean = () => true) =>
  until('the evidence', () => {
    const crash = crashOf(world, app)
    return crash !== undefined && is(crash) ? crash : undefined
  })

describe.concurrent('the evidence of a crash', () => {
  test.override({ options: { broker: BROKER } })

  test('has the data from before the crash, with settings by name only, and survives a restart of the bridge', async ({
    world,
  }) => {
    const { app, hub } = world
    await until('its usage', () => world.state(app)?.['memory_bytes'])
    hub.change(app, { usage: { cpu: 0.25, mem: 77 * 2 ** 20 } })
    await until('the usage', () => world.state(app)?.['memory_bytes'] === 77 * 2 ** 20)
    await world.request(`home/app/${app}/cmd/set-setting/mode`, 'value-of-a-setting')
    await world.request(`home/app/${app}/cmd/set-setting`, '{"name":"other","value":"value-of-a-setting"}')
    hub.crash(app, STACK)
    const crash = await untilCrash(world, app)
    expect(crash).toMatchObject({
      reason: 'exception',
      message: STACK,
      stack_head: STACK,
      version: world.state(app)?.['version'],
      firmware: hub.version,
      exit_code: 1,
      exit_signal: null,
      others_crashed: [],
      guard: null,
    })
    const [seconds, , memory] = crash.samples.at(-1) ?? []
    expect(seconds).toBeLessThan(120)
    expect(memory).toBeGreaterThanOrEqual(77 * 2 ** 20)
    expect(crash.before).toMatchObject([
      { what: 'setting', app, to: 'other', by: null },
      { what: 'setting', app, to: 'mode', by: null },
    ])
    expect(JSON.stringify(crash)).not.toContain('value-of-a-setting')
    const { data } = await world.request(`home/app/${app}/cmd/get-crash`)
    expect(data).toEqual({ markdown: expect.stringContaining('lamp.js:12:5') })
    await world.restart()
    await world.settle()
    expect(world.observer.texts(topicOf(app))).toEqual([JSON.stringify(crash)])
    expect((await retainedOn(world.broker.port)).get(topicOf(app))).toBe(JSON.stringify(crash))
    expect((await world.request(`home/app/${app}/cmd/get-crash`)).data).toEqual(data)
  })

  test('names other apps that crashed within ten minutes, in both directions, and each is logged once', async ({
    world,
  }) => {
    const [one = '', two = '', three = ''] = [...world.hub.apps.values()].flatMap(({ id, state }) =>
      state === 'running' ? [id] : [],
    )
    world.hub.crash(one, 'Error: fetch failed')
    await untilCrash(world, one)
    world.hub.crash(two, 'Error: fetch failed')
    expect((await untilCrash(world, two)).others_crashed).toEqual([one])
    await untilCrash(world, one, ({ others_crashed }) => others_crashed.join() === two)
    expect((await untilCrash(world, two)).before).toMatchObject([{ what: 'crashed', app: one }])
    const { data } = await world.request(`home/app/${two}/cmd/get-crash`)
    expect(data).toEqual({ markdown: expect.stringContaining('2 apps crashed within a minute.') })
    const told = () => world.bridge.lines.filter((line) => line.includes('apps crashed within a minute'))
    world.clock.jump(61_000)
    await until('the line', () => told().length === 1)
    expect(told()[0]).toContain('2 apps crashed within a minute')
    // One app crashes again. The evidence of the other app must not change.
    const crashes = () => world.events(one).filter(({ event_type }) => event_type === 'crashed').length
    const before = crashes()
    world.hub.recover(one)
    await until('one that runs', () => world.state(one)?.['state'] === 'running')
    world.hub.crash(one, 'Error: again')
    await until('the crash', () => crashes() > before)
    world.clock.jump(61_000)
    world.clock.jump(11 * 60_000)
    world.hub.crash(three, 'Error: oh')
    expect((await untilCrash(world, three)).others_crashed).toEqual([])
    expect((await untilCrash(world, one)).others_crashed).toEqual([two])
    expect(told()).toHaveLength(1)
    // The same apps crash together again, later.
    world.clock.jump(11 * 60_000)
    for (const id of [one, two]) {
      world.hub.recover(id)
      await until('the app that runs', () => world.state(id)?.['state'] === 'running')
      world.hub.crash(id, 'Error: later')
      await untilCrash(world, id, ({ message }) => message === 'Error: later')
    }
    world.clock.jump(61_000)
    await until('the second line', () => told().length === 2)
  })

  test('has the reason from the exit signal if the hub sends no message, and so has the guardian', async () => {
    const record = { crashed: true, crashedMessage: null, exitCode: null, exitSignal: 'SIGKILL' }
    const apps = [{ id: 'the.app', record }]
    await using world = await World.start({ broker: BROKER, hub: { apps }, file: 'guard: {watch: ["*"]}\n' })
    expect(await untilCrash(world, 'the.app')).toMatchObject({
      reason: 'killed',
      message: null,
      exit_signal: 'SIGKILL',
    })
    const guard = () => JSON.parse(world.observer.last('hub2mqtt/home/app/the.app/guard') || '{}')
    expect(await until('the crash', () => guard().last_crash)).toMatchObject({ reason: 'killed', message: null })
  })

  test('has the health of the hub at that time, if the key may read it', async () => {
    const keys = { [KEY]: ['hub.app', 'hub.system.readonly'] }
    await using world = await World.start({ broker: BROKER, hub: { keys } })
    const { app, hub } = world
    const health = () => JSON.parse(world.observer.last('hub2mqtt/home/health') || '{}')
    await until('the health', () => health().booted_at, 20_000)
    hub.crash(app, 'Error: oh')
    const crash = await untilCrash(world, app)
    expect(crash.hub).toMatchObject({ memory_total_bytes: health().memory_total_bytes, booted_at: health().booted_at })
    expect(crash.uptime_seconds).toBeGreaterThanOrEqual(0)
    const { data } = await world.request(`home/app/${app}/cmd/get-crash`)
    expect(data).toEqual({ markdown: expect.stringContaining('| Free memory of the hub |') })
  })

  test('has the planned action of the guardian, and is removed for good by the command that resets the guardian', async () => {
    await using world = await World.start({ broker: BROKER, env: { GUARD_WATCH: '*', GUARD_BACKOFF: '5m' } })
    const { app } = world
    world.hub.crash(app, 'Error: oh')
    const crash = await untilCrash(world, app)
    expect(crash.guard).toEqual({ state: 'waiting', restarts: 0, next_restart_at: expect.any(String) })
    expect((await world.request(`home/app/${app}/cmd/guard`, '{"forget":true}')).ok).toBe(true)
    await until('nothing', () => world.observer.last(topicOf(app)) === '')
    expect((await world.request(`home/app/${app}/cmd/get-crash`)).data).toEqual({ markdown: null })
    await world.restart()
    await world.settle()
    expect(crashOf(world, app)).toBeUndefined()
    expect((await world.request(`home/app/${app}/cmd/get-crash`)).data).toEqual({ markdown: null })
  })

  test('is removed by the same command while the guardian is off, without any other effect', async ({ world }) => {
    const { app } = world
    world.hub.crash(app, 'Error: oh')
    await untilCrash(world, app)
    for (const payload of ['ON', '{"snooze":"1h"}', '{"forget":true,"enabled":false}']) {
      const { error } = await world.request(`home/app/${app}/cmd/guard`, payload)
      expect(error, payload).toMatchObject({ code: 'not_allowed', message: expect.stringContaining('guard.watch') })
    }
    expect(crashOf(world, app)).toBeDefined()
    expect(await world.request(`home/app/${app}/cmd/guard`, '{"forget":true}')).toMatchObject({ ok: true })
    await until('nothing', () => world.observer.last(topicOf(app)) === '')
  })

  test('includes a message that the hub sends after the crash', async ({ world }) => {
    const { app, hub } = world
    hub.change(app, { crashed: true, state: 'stopped' })
    expect((await untilCrash(world, app)).message).toBeNull()
    hub.change(app, { crashedMessage: 'Too many memwarns' })
    const crash = await untilCrash(world, app, ({ message }) => message !== null)
    expect(crash).toMatchObject({ message: 'Too many memwarns', reason: 'memory_limit' })
  })
})

const crashedApp = (crash_count: number | null, crash_message = 'Error: oh') =>
  patchApp(undefined, 'x', { version: '1.0.0', crashed: true, crash_count, crash_message })

/** Returns the evidence that is recorded when the hub's list contains this app. */
function found(evidence: Evidence, after: App) {
  const then = { firmware: null, health: null, uptime: null, guardOf: () => undefined }
  evidence.of('home').appsChanged([{ id: 'x', before: undefined, after, events: [] }], then, true)
  return evidence.of('home').crashes.get('x')
}

describe.each(['after', 'before', 'by another member, before'])('evidence that is read %s the list', (order) => {
  const clock = new FakeClock()
  const own = found(new Evidence(clock, silentLog), crashedApp(1))
  const held = JSON.stringify(own)
  const earlier = JSON.stringify({ ...own, message: 'Error: earlier' })
  clock.step(60_000)

  test.each([
    ['of the same crash is adopted', 2, crashedApp(2), held, own],
    ['of the same crash is adopted from a hub that does not count', null, crashedApp(null), held, own],
    ['is adopted without the state', 2, undefined, held, own],
    ['that was cleared is not created again', 2, crashedApp(2), '', null],
    ['of an earlier crash is replaced', 2, crashedApp(1), held, undefined],
    ['of an earlier crash is replaced although the state is newer', 2, crashedApp(2), earlier, undefined],
    ['that was cleared is created for another crash', 2, crashedApp(1), '', undefined],
    ['that was cleared is created for another message', 2, crashedApp(2, 'Error: no'), '', undefined],
    ['that is invalid is replaced', 2, crashedApp(2), '{}', undefined],
  ] as const)('%s', (_, count, state, crash, expected) => {
    const isOfMember = order.startsWith('by')
    const evidence = new Evidence(clock, silentLog)
    if (isOfMember && own) evidence.of('home').crashes.set('x', own)
    if (order === 'after') found(evidence, crashedApp(count))
    if (crash !== '' || isOfMember) evidence.learn('home', 'x', crash, !isOfMember)
    if (state !== undefined) evidence.learnState('home', 'x', JSON.stringify(state), isOfMember)
    if (order !== 'after') found(evidence, crashedApp(count))
    evidence.of('home').adoptAll([crashedApp(count)], false)
    const isNew = { ...own, at: new Date(clock.now()).toISOString() }
    expect(evidence.of('home').crashes.get('x')).toEqual(expected === undefined ? isNew : expected)
  })
})

test('evidence has the other events even after many writes by an automation', () => {
  const hub = new Evidence(new FakeClock(), silentLog).of('home')
  const then = { firmware: null, health: null, uptime: null, guardOf: () => undefined }
  const crash = (id: string) => {
    const event = { event_type: 'crashed', app: id, changed: [], at: '', message: null, count: 1 } as const
    const after = patchApp(undefined, id, { crashed: true, crash_message: 'Error: oh' })
    hub.appsChanged([{ id, before: after, after, events: [event] }], then, false)
  }
  hub.restarted()
  crash('other')
  const command = commandOf('set-setting')
  for (let i = 0; i < 150; i += 1)
    hub.commanded({ app: 'x', about: 'x', command, by: null, setting: `${i}`, starts: false, phase: 'ended', ok: true })
  crash('x')
  const { before = [], others_crashed } = hub.crashes.get('x') ?? {}
  expect(others_crashed).toEqual(['other'])
  expect(before).toHaveLength(99)
  expect(before[0]).toMatchObject({ what: 'setting', to: '149' })
  expect(before.slice(-2)).toMatchObject([{ what: 'crashed', app: 'other' }, { what: 'hub_restarted' }])
})

test('evidence that was forgotten stays so for an app that runs again on a hub that does not count crashes', () => {
  const evidence = new Evidence(new FakeClock(), silentLog)
  const crashed = crashedApp(null)
  expect(found(evidence, crashed)).toMatchObject({ message: 'Error: oh' })
  const running = { ...crashed, crashed: false }
  evidence.readsBack()
  evidence.learnState('home', 'x', JSON.stringify(running), false)
  expect(evidence.of('home').adoptAll([running], true)).toEqual(['x'])
  expect(evidence.of('home').crashes.get('x')).toBeNull()
})

test('evidence of another member is forgotten when that member publishes some that cannot be read', () => {
  const evidence = new Evidence(new FakeClock(), silentLog)
  expect(found(evidence, crashedApp(1))).toBeDefined()
  evidence.learn('home', 'x', 'x'.repeat(MAX_CRASH_BYTES + 1), false)
  expect(evidence.of('home').crashes.get('x')).toBeUndefined()
})

test('the reads of evidence are allowed under read_only with the least scope, and need no request', async () => {
  await using world = await World.start({
    broker: BROKER,
    env: { COMMANDS_READ_ONLY: 'true' },
    hub: { keys: { [KEY]: ['hub.app.readonly'] } },
  })
  const { app, hub } = world
  await until('its usage', () => world.state(app)?.['memory_bytes'])
  hub.forgetRequests()
  const { data } = await world.request(`home/app/${app}/cmd/get-history`, '{"hours":1}')
  expect(data).toMatchObject({ resolution_seconds: 60, source: 'bridge' })
  const { cpu_percent, memory_bytes } = v.parse(
    v.object({ cpu_percent: v.array(v.tuple([v.number(), v.number()])), memory_bytes: v.array(v.array(v.number())) }),
    data,
  )
  expect(cpu_percent).toHaveLength(1)
  expect(memory_bytes[0]?.[1]).toBe(world.state(app)?.['memory_bytes'])
  expect(Math.abs((cpu_percent[0]?.[0] ?? 0) * 1000 - Date.now())).toBeLessThan(120_000)
  expect((await world.request(`home/app/${app}/cmd/get-history`)).data).toMatchObject({ resolution_seconds: 600 })
  expect((await world.request(`home/app/${app}/cmd/get-crash`)).data).toEqual({ markdown: null })
  expect(hub.requests.filter(({ operation }) => operation !== 'getApps')).toEqual([])
  expect((await world.request(`home/app/${app}/cmd/get-history`, '{"hours":0}')).error?.code).toBe('invalid_payload')
  expect((await world.request('home/app/not.there/cmd/get-crash')).error?.code).toBe('unknown_app')
  hub.setKeys({ [KEY]: ['hub.app.readonly', 'hub.insights.readonly'] })
  await world.request('home/cmd/refresh')
  expect((await world.request(`home/app/${app}/cmd/get-history`)).data).toMatchObject({ source: 'hub' })
})

describe("the hub's logs", () => {
  /** Opens a hub with an app of which the bridge has only one sample. */
  const open = async (flavour: Flavour = 'older') => {
    const clock = new FakeClock(Date.now())
    const emulated = await emulate({ flavour, keys: { key: ['hub.app.readonly', 'hub.insights.readonly'] } })
    const watched = hold(emulated.url, { realtime: false, timeoutMs: 60_000 })
    await listed(watched)
    emulated.forgetRequests()
    const { hub } = watched
    const app = anApp(emulated)
    const largeReads = limitLargeReads(clock)
    const points = [[Math.floor(clock.now() / 1000), 7]] as const
    const own = { resolution_seconds: 60, cpu_percent: points, memory_bytes: points, source: 'bridge' } as const
    const history = (hours = 24) =>
      usageHistory({ hub, app, hours, own, largeReads, clock, deadline: clock.elapsed() + 10_000 })
    const asked = () =>
      emulated.requests.flatMap(({ operation }) => (operation?.startsWith('getLog') ? [operation] : []))
    return { clock, emulated, app, known: hub.apps.all.get(app), own, history, asked }
  }

  test.each([
    ['older', 1, 60],
    ['older', 2, 300],
    ['newer', 24, 300],
    ['self-hosted', 30, 3600],
    ['older', 168, 3600],
  ] as const)('of the %s kind give %d hours, every %d s, with three requests', async (flavour, hours, seconds) => {
    const { clock, known, history, asked } = await open(flavour)
    const { cpu_percent, memory_bytes, ...rest } = await history(hours)
    expect(rest).toEqual({ resolution_seconds: seconds, source: 'hub' })
    for (const points of [cpu_percent, memory_bytes]) {
      expect(points.length).toBeGreaterThanOrEqual((hours * 3600) / seconds - 1)
      expect(points.length).toBeLessThanOrEqual((hours * 3600) / seconds + 1)
      expect(points[0]?.[0]).toBeGreaterThanOrEqual(Math.floor(clock.now() / 1000) - hours * 3600 - 60)
    }
    expect(memory_bytes.at(-1)?.[1]).toBe(known?.memory_bytes)
    expect(cpu_percent.at(-1)?.[1]).toBe(known?.cpu_percent)
    expect(asked()).toEqual(['getLogs', 'getLogEntries', 'getLogEntries'])
  })

  test.each([
    [0, 0],
    [2, 0],
    [3, 1],
    [59, 1],
  ])(
    'are read if the samples of the bridge do not cover the hours: %d minutes less, %d requests',
    async (less, times) => {
      const clock = new FakeClock()
      let requests = 0
      const read = () => {
        requests += 1
        return Promise.reject(new Error('it was asked'))
      }
      const from = clock.now() / 1000 - 2 * 3600 + less * 60
      const points = [[from, 1]] as const
      const own = { resolution_seconds: 60, cpu_percent: points, memory_bytes: points, source: 'bridge' } as const
      const hub = { permits: () => 'yes' as const, client: { call: read } }
      const largeReads = limitLargeReads(clock)
      expect(await usageHistory({ hub, app: 'a', hours: 2, own, largeReads, clock, deadline: 9 })).toBe(own)
      expect(requests).toBe(times)
    },
  )

  const FUTURE = [4e12, 4.1e12].map((at) => [at, 1])
  const INVALID = [[1, -1], ['never', 2], [9e99, 3], null]
  test.each([
    ['403', 'answer-status', { status: 403 }],
    ['JSON of another shape', 'wrong-shape', {}],
    ['one figure only', 'wrong-shape', { value: [[Date.now() - 3_600_000, 1]] }],
    ['figures in the far future', 'wrong-shape', { value: FUTURE }],
    ['invalid figures', 'wrong-shape', { value: INVALID }],
    ['a body that is too large', 'big-body', { megabytes: 9 }],
  ] as const)('are replaced by the samples of the bridge if the hub answers with %s', async (_, behaviour, options) => {
    for (const operation of ['getLogEntries', 'getLogs'] as const) {
      const { emulated, own, history, asked } = await open()
      emulated.behave(behaviour, { ...options, operation })
      expect(await history()).toBe(own)
      expect(asked()).toContain(operation)
    }
  })

  test('give figures in the order of their times, the last one for each time, and none from the far future', async () => {
    const { clock, emulated, history } = await open()
    const now = Math.floor(clock.now() / 1000)
    const [three, four, five] = [3, 4, 5].map((hours) => now - hours * 3600)
    const value = [
      [three, 1],
      [five, 3],
      [three, 6],
      [now + 40_000_000, 9],
      [four, 4.04],
      [now - 100 * 3600, 2],
    ]
    emulated.behave('wrong-shape', { operation: 'getLogEntries', value })
    const points = [
      [five, 3],
      [four, 4],
      [three, 6],
    ]
    expect(await history()).toEqual({
      resolution_seconds: 3600,
      cpu_percent: points,
      memory_bytes: points,
      source: 'hub',
    })
  })

  const CELSIUS = [
    { id: 'cpu', units: '°C' },
    { id: 'memory', units: 'B' },
  ]
  test.each([
    ['another unit', CELSIUS],
    ['another name', [{ id: 'cpu' }, { id: 'memory_of_the_camera' }]],
  ])('that have %s are not used as usage of the app', async (_, logs) => {
    const { emulated, app, own, history, asked } = await open()
    const value = logs.map((log) => ({ ...log, uri: `homey:app:${app}` }))
    emulated.behave('wrong-shape', { operation: 'getLogs', value })
    expect(await history()).toBe(own)
    expect(asked()).toEqual(['getLogs'])
  })

  test.each(['getLogs', 'getLogEntries'] as const)(
    'are replaced by the samples of the bridge, before the command expires, if the hub is silent on %s',
    { timeout: 10_000 },
    async (operation) => {
      const { clock, emulated, own, history, asked } = await open()
      emulated.behave('never-answer', { operation })
      const answer = history()
      await until('the request', () => asked().includes(operation))
      await clock.advance(5_000)
      expect(await answer).toBe(own)
    },
  )
})
