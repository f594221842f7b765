import pino from 'pino'
import { expect, test } from 'vitest'
import { Limiter } from '../../src/base/limiter.ts'
import { AppUpdates } from '../../src/bridge/app-updates.ts'
import { Evidence } from '../../src/bridge/evidence.ts'
import { FormerHubs } from '../../src/bridge/former.ts'
import { HubState } from '../../src/bridge/hub-state.ts'
import { rowTable } from '../../src/bridge/owner-rows.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createTopics } from '../../src/contract/topics.ts'
import { emulate, hold, listed } from '../hub/support.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'

const topics = createTopics('b')
const log = pino({ level: 'silent' })
const PUBLISHED = 'settings: { publish: { x: { mode: text } } }'
const configOf = (yaml: string) =>
  loadConfig({ env: {}, file: 'x.yaml', readFile: () => yaml, requireHub: false }).config

/** Opens an emulated hub with the apps `x` and `y`. Records the calls in order. */
async function open() {
  const emulated = await emulate({ apps: [{ id: 'x', settings: { mode: 'on', other: 1 } }, { id: 'y' }] })
  const done: string[] = []
  const noted =
    <T>(what: string, result: T) =>
    () => {
      done.push(what)
      return result
    }
  const link = {
    hold: (topic: string, payload: string | null) => void done.push(`${payload === null ? 'clear' : 'hold'} ${topic}`),
    send: (topic: string) => void done.push(`send ${topic}`),
  }
  const clock = new FakeClock()
  const live = { value: configOf(PUBLISHED) }
  const watched = hold(emulated.url, { realtime: false })
  const state = new HubState('home', watched.hub, {
    topics,
    live,
    table: rowTable(topics, link, log, (when) => when !== 'guard'),
    link,
    guardian: {
      factsOf: () => undefined,
      attentionOf: () => undefined,
      goneAppsOf: () => undefined,
      hubReplaced: noted('guard: replaced', undefined),
      take: (_, { kind }) => void done.push(`guard: ${kind}`),
    },
    homeAssistant: { appsChanged: noted('discovery: apps', undefined), hubChanged: noted('discovery: hub', true) },
    upkeep: {
      request: noted('sweep', undefined),
      listRead: noted('read', undefined),
      former: new FormerHubs(),
    },
    updates: new AppUpdates(clock),
    evidence: new Evidence(clock, log),
    fleet: undefined,
    early: { role: 'active', run: (task) => task() },
    clock,
    log,
    largeReads: new Limiter({ clock, slots: 4 }),
  })
  await listed(watched)
  await until('the setting', () => done.includes('hold b/home/app/x/setting/mode'))
  return { hub: watched.hub, apps: watched.hub.apps, state, live, take: () => done.splice(0) }
}

test('a changed state is retained before its event is sent; then the other subscribers are notified in a fixed order', async () => {
  const { apps, take } = await open()
  take()
  apps.receive({ type: 'update', id: 'y', patch: { crashed: true, crash_message: 'oh' } })
  expect(take()).toEqual([
    'hold b/home/app/y',
    'send b/home/event',
    'send b/home/app/y/event',
    'hold b/home/info',
    'hold b/home/summary',
    'guard: apps',
    'hold b/home/app/y/crash',
    'discovery: apps',
  ])
})

test('usage figures are retained, and only the guardian is notified', async () => {
  const { apps, take } = await open()
  take()
  apps.receive({ type: 'update', id: 'y', patch: { cpu_percent: 0.5, memory_bytes: 77_000_000 } })
  expect(take()).toEqual(['hold b/home/app/y', 'guard: apps'])
})

test('a removed app is cleared with its settings', async () => {
  const { apps, take } = await open()
  take()
  apps.receive({ type: 'delete', id: 'x' })
  expect(take().slice(0, 7)).toEqual([
    'clear b/home/app/x/setting/mode',
    'clear b/home/app/x',
    'clear b/home/app/x/update',
    'clear b/home/app/x/links',
    'clear b/home/app/x/crash',
    'send b/home/event',
    'send b/home/app/x/event',
  ])
})

test('a removed hub is cleared with everything below it', async () => {
  const { state, take } = await open()
  take()
  state.clear()
  expect(take()).toEqual([
    'clear b/home/app/x/setting/mode',
    ...['', '/update', '/links', '/crash'].map((row) => `clear b/home/app/x${row}`),
    ...['', '/update', '/links', '/crash'].map((row) => `clear b/home/app/y${row}`),
    ...['state', 'info', 'summary', 'health'].map((row) => `clear b/home/${row}`),
  ])
})

test('a hub that another member takes over is left on the broker as it is, whatever was in progress', async () => {
  const { state, take, hub } = await open()
  take()
  state.settings.refresh()
  state.release()
  await hub.call('getAppSettings', { id: 'x' })
  expect(take()).toEqual([])
})

test('a setting that is no longer published is cleared, and the others are read again', async () => {
  const { state, live, take } = await open()
  take()
  live.value = configOf('settings: { publish: { x: { other: { type: number, min: 0, max: 9 } } } }')
  state.reconfigured()
  const done: string[] = []
  await until('the other', () => {
    done.push(...take())
    return done.includes('hold b/home/app/x/setting/other')
  })
  expect(done[0]).toBe('clear b/home/app/x/setting/mode')
  expect(done).not.toContain('hold b/home/app/x/setting/mode')
})
