/** Tests the guardian in the bridge as users run it, with an emulated hub, a real broker, and an observing client. */
import { test as base, describe, expect } from 'vitest'
import { startBridge } from '../support/bridge.ts'
import { until } from '../support/until.ts'
import { World, type WorldOptions } from '../support/world.ts'

/** Run the tests concurrently, because each has its own world and mostly waits. */
const test = base.concurrent

const APP = 'the.app'
const APPS = [{ id: APP, name: 'The app', version: '1.0.0' }, { id: 'another.app' }]
const ENV = { GUARD_WATCH: '*', GUARD_BACKOFF: '1s' }

const parsedOf = (world: World, topic: string) => {
  const text = world.observer.last(topic)
  return text === undefined || text === '' ? undefined : JSON.parse(text)
}
const parsed = (world: World, topic: string) => parsedOf(world, `hub2mqtt/home/app/${APP}/${topic}`)
const guardOf = (world: World): Record<string, unknown> | undefined => parsed(world, 'guard')
const historyOf = (world: World): Record<string, unknown>[] => parsed(world, 'history') ?? []
const types = (world: World) => world.events(APP).map((event) => event['event_type'])
const restarts = (world: World) => world.requestCount('restartApp')
const untilGuard = (world: World, state: string) =>
  until(`the guard ${state}`, () => guardOf(world)?.['state'] === state)

/** Resolves when the guardian watches the app. */
async function watching(options: WorldOptions = {}): Promise<World> {
  await using open = new AsyncDisposableStack()
  const world = open.use(await World.start({ hub: { apps: APPS }, env: ENV, ...options }))
  await untilGuard(world, 'watching')
  open.move()
  return world
}

async function crashAndRestart(world: World): Promise<void> {
  world.hub.crash(APP, 'Error: boom\n    at index.js:1:1')
  await until('the restart', () => types(world).includes('restarted'))
  await untilGuard(world, 'watching')
}

test('nothing is watched and nothing of the guardian is published unless configuration names an app', async () => {
  await using world = await World.start({ hub: { apps: [{ ...APPS[0], id: APP, crashed: 'Error: boom' }] } })
  await world.settle()
  expect(world.observer.seen.map(({ topic }) => topic).filter((topic) => /guard|history/.test(topic))).toEqual([])
  expect(await world.request(`home/app/${APP}/cmd/guard`, 'ON')).toMatchObject({ error: { code: 'not_allowed' } })
  expect(JSON.parse(world.observer.last('hub2mqtt/home/info') ?? '').commands).not.toContain('guard')
  expect(restarts(world)).toBe(0)
})

test('an app that crashes is restarted, and its state, events, history and the log have the reason', async () => {
  await using world = await watching()
  await crashAndRestart(world)
  await until('a running app', () => world.state(APP)?.['state'] === 'running')
  expect(types(world).indexOf('crashed')).toBeLessThan(types(world).indexOf('restarted'))
  expect(world.events(APP).find((event) => event['event_type'] === 'restarted')).toEqual({
    event_type: 'restarted',
    app: APP,
    changed: [],
    at: expect.stringMatching(/Z$/),
    reason: 'exception',
  })
  expect(guardOf(world)).toMatchObject({
    restarts: 1,
    restarts_in_window: 1,
    next_restart_at: null,
    last_crash: { reason: 'exception', message: 'Error: boom at index.js:1:1', version: '1.0.0' },
    attention: [],
  })
  expect(historyOf(world)).toMatchObject([
    { what: 'restart', reason: 'exception', by: 'guard' },
    { what: 'crash', reason: 'exception', by: null },
  ])
  const line = world.bridge.lines.map((text) => JSON.parse(text)).find(({ command }) => command === 'restart')
  expect(line).toMatchObject({ command: 'restart', hub: 'home', app: APP, outcome: 'ok', by: 'guard' })
  // No answer is published, because no client has sent the command.
  expect(world.observer.seen.filter(({ topic }) => topic.includes('/result/'))).toEqual([])
})

test('counts, given-up apps and switches survive a restart of the bridge', async () => {
  await using world = await watching({ env: { ...ENV, GUARD_MAX_RESTARTS: '1' } })
  await crashAndRestart(world)
  world.hub.crash(APP, 'Too many memwarns')
  await untilGuard(world, 'given_up')
  expect(await world.request('home/app/another.app/cmd/guard', 'OFF')).toMatchObject({ ok: true })
  const before = { guard: guardOf(world), history: historyOf(world) }
  const count = restarts(world)
  await world.restartUntilReady()
  await world.settle()
  expect({ guard: guardOf(world), history: historyOf(world) }).toEqual(before)
  expect(before.guard).toMatchObject({ state: 'given_up', restarts: 1, attention: ['memory_limit'] })
  expect(JSON.parse(world.observer.last('hub2mqtt/home/app/another.app/guard') ?? '')).toMatchObject({ state: 'off' })
  expect(types(world).filter((type) => type === 'gave_up')).toHaveLength(1)
  expect(restarts(world)).toBe(count)
  // The command lets the guardian restart an app it gave up on.
  expect(await world.request(`home/app/${APP}/cmd/guard`, 'ON')).toMatchObject({ ok: true })
  await until('another restart', () => restarts(world) === count + 1)
})

describe('another hub at the address', () => {
  test.each([true, false])(
    'starts without data of the previous one, even if it was replaced while no bridge ran (bridge first: %s)',
    async (isBridgeFirst) => {
      await using world = await watching({ hub: { id: 'former', apps: [...APPS, { id: 'gone.app' }] } })
      for (const app of ['another.app', 'gone.app']) await world.request(`home/app/${app}/cmd/guard`, 'OFF')
      world.hub.crash(APP, 'Error: boom')
      await until('the restart', () => guardOf(world)?.['restarts'] === 1)
      world.hub.uninstall('gone.app')
      await until('its memory', () => (world.observer.last('hub2mqtt/home/guard-memory') ?? '') !== '')
      await world.bridge.stop()
      world.hub.behave('other-identity', { id: 'another' })
      if (isBridgeFirst) world.hub.behave('answer-status', { status: 503 })
      await world.restart()
      if (isBridgeFirst) {
        await until('the bridge', () => world.observer.last('hub2mqtt/bridge/state') === 'online')
        world.hub.behaveWell()
        world.hub.behave('other-identity', { id: 'another' })
      }
      await until('its id', () => parsedOf(world, 'hub2mqtt/home/info')?.['id'] === 'another')
      for (const topic of ['home/guard-memory', `home/app/${APP}/crash`])
        await until(topic, () => (world.observer.last(`hub2mqtt/${topic}`) ?? '') === '')
      const other = () => parsedOf(world, 'hub2mqtt/home/app/another.app/guard')?.['state']
      await until('a guard that begins', () => guardOf(world)?.['restarts'] === 0 && other() === 'watching')
      expect(historyOf(world)).toEqual([])
    },
  )
})

describe('an app that is removed and returns within a day', () => {
  const goes: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
    'is uninstalled': async ({ hub }) => hub.uninstall(APP),
    'is missing from all lists': async ({ hub }) => hub.uninstall(APP, { silent: true }),
    'is missing from the lists that a bridge reads after its start': async (world) => {
      await world.bridge.stop()
      world.hub.uninstall(APP, { silent: true })
      await world.restart()
    },
  }
  const GONE = 'hub2mqtt/home/guard-memory'

  test.each(Object.entries(goes))(
    'that %s leaves nothing on its topics, and is off as before, also after a restart',
    async (_, go) => {
      await using world = await watching()
      expect(await world.request(`home/app/${APP}/cmd/guard`, 'OFF')).toMatchObject({ ok: true })
      await go(world)
      for (const topic of ['', '/guard', '/guard-memory']) {
        await until(`no ${topic}`, () => world.observer.last(`hub2mqtt/home/app/${APP}${topic}`) === '')
      }
      await until('the remembered data', () => world.observer.last(GONE))
      expect(JSON.parse(world.observer.last(GONE) ?? '')).toMatchObject([{ app: APP, gone_hours: 0 }])
      await world.restartUntilReady()
      await world.settle()
      world.hub.install({ id: APP, name: 'The app', crashed: 'Error: boom' })
      await untilGuard(world, 'off')
      await until('no remembered data', () => world.observer.last(GONE) === '')
      expect(restarts(world)).toBe(0)
    },
  )
})

test.each([
  ['older', true],
  ['self-hosted', false],
] as const)(
  'a window with a hold leaves out the apps of a hub of the %s kind, and logs that: %s',
  async (flavour, isLeftOut) => {
    const UPDATES = { UPDATES_POLICY: 'window', UPDATES_WINDOW_START: '* * * * *', UPDATES_HOLD_DAYS: '1' }
    const apps = [{ id: APP, version: '1.0.0', update: '2.0.0' }]
    await using world = await World.start({ hub: { flavour, apps }, env: { ...ENV, ...UPDATES } })
    await until('the offer', () => parsed(world, 'guard-memory')?.offered?.seen_seconds === 0)
    await world.request('home/cmd/refresh')
    await world.settle()
    expect(world.bridge.lines.filter((line) => line.includes('updates.hold_days'))).toHaveLength(isLeftOut ? 1 : 0)
    expect(world.hub.apps.get(APP)).toMatchObject({ version: '1.0.0' })
  },
)

test('an app that a user has disabled on the hub since the last read is not restarted', async () => {
  await using world = await watching({ env: { ...ENV, GUARD_BACKOFF: '2s', HUB_POLL_INTERVAL: '1h' } })
  world.hub.crash(APP, 'Error: boom')
  await untilGuard(world, 'waiting')
  world.hub.behave('lose-events')
  world.hub.disable(APP)
  await untilGuard(world, 'watching')
  expect(world.state(APP)).toMatchObject({ enabled: false })
  expect(restarts(world)).toBe(0)
})

test('if restart is denied, the switch of the guardian works but nothing is restarted; if the switch is denied, restarts work', async () => {
  await using world = await World.start({ hub: { apps: APPS }, env: { ...ENV, COMMANDS_DENY: 'restart' } })
  world.hub.crash(APP)
  await untilGuard(world, 'given_up')
  expect(await world.request(`home/app/${APP}/cmd/guard`, 'ON')).toMatchObject({ ok: true })
  const gaveUp = () => world.events(APP).filter((event) => event['event_type'] === 'gave_up')
  await until('the same end', () => gaveUp().length === 2)
  expect(gaveUp()).toMatchObject([{ message: 'not_allowed' }, { message: 'not_allowed' }])
  // The state follows the event.
  await untilGuard(world, 'given_up')
  expect(guardOf(world)).toMatchObject({ restarts: 0 })
  expect(restarts(world)).toBe(0)
  await using other = await World.start({ hub: { apps: APPS }, env: { ...ENV, COMMANDS_DENY: 'guard' } })
  expect(await other.request(`home/app/${APP}/cmd/guard`, 'OFF')).toMatchObject({ error: { code: 'not_allowed' } })
  other.hub.crash(APP)
  await until('the restart', () => types(other).includes('restarted'))
})

test('a reload turns the guardian on, and off again, with nothing of the guardian left on the broker', async () => {
  const file = (watch: string) => `guard: { watch: [${watch}], backoff: 1s }`
  await using world = await World.start({ hub: { apps: APPS }, file: file('') })
  world.hub.crash(APP)
  world.bridge.reload(file('"*"'))
  await until('the restart', () => types(world).includes('restarted'))
  world.bridge.reload(file(''))
  for (const topic of ['guard', 'history']) {
    await until(`no ${topic}`, () => world.observer.last(`hub2mqtt/home/app/${APP}/${topic}`) === '')
  }
})

test('of two bridges on one base topic only the active one restarts an app', async () => {
  await using world = await World.start({ broker: 'mosquitto', hub: { apps: APPS }, env: ENV })
  await using other = startBridge({ ...world.env })
  await until('the second to stand by', () => other.lines.some((line) => line.includes('stands by')))
  await crashAndRestart(world)
  expect(restarts(world)).toBe(1)
  expect(other.lines.some((line) => line.includes('"by":"guard"'))).toBe(false)
})
