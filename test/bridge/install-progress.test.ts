/** Tests the progress of an install. `contract/installs.test.ts` tests its result. */
import { describe, expect, test } from 'vitest'
import { AppUpdates } from '../../src/bridge/app-updates.ts'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

const APP = 'the.app'
const apps = [{ id: APP, version: '1.0.0', update: '1.1.0' }, { id: 'another.app' }]
const cmd = (command: string) => `home/app/${APP}/cmd/${command}`

/** Makes polls too rare to happen, because a test cannot observe their timers. */
const RARELY = { HUB_POLL_INTERVAL: '1h', HUB_POLL_INTERVAL_FALLBACK: '1h' }

const inProgress = ({ observer }: World) =>
  JSON.parse(observer.last(`hub2mqtt/home/app/${APP}/update`) ?? '{}').in_progress

test.concurrent('an install that takes longer than a call may shows its progress until the hub has another version, and is then ok', async () => {
  await using world = await World.start({ hub: { apps }, env: { ...RARELY, HUB_TIMEOUT: '300ms' } })
  world.hub.behave('never-answer', { operation: 'installFromAppStore' })
  const answer = world.request(cmd('install'))
  await until('a check', () => {
    const order = world.hub.requests.map(({ operation }) => operation)
    return order.lastIndexOf('getApps') > order.indexOf('installFromAppStore') && order.includes('installFromAppStore')
  })
  expect(inProgress(world)).toBe(true)
  world.hub.install(APP)
  expect(await answer).toMatchObject({ ok: true })
  await until('the end of the progress', () => inProgress(world) === false)
  expect(world.requestCount('installFromAppStore')).toBe(1)
})

test.concurrent('an install that the hub confirms before it is done shows its progress until the hub has its version', async () => {
  await using world = await World.start({ hub: { apps }, env: RARELY })
  world.hub.behave('pretend', { operation: 'installFromAppStore', value: null })
  expect(await world.request(cmd('install'))).toMatchObject({ ok: true })
  expect(await world.request('home/cmd/refresh')).toMatchObject({ ok: true })
  const shown = () =>
    world.observer.texts(`hub2mqtt/home/app/${APP}/update`).map((text) => {
      const { in_progress, installed_version } = JSON.parse(text || '{}')
      return `${in_progress} ${installed_version}`
    })
  expect(shown()).toEqual(['false 1.0.0', 'true 1.0.0'])
  world.hub.install(APP)
  expect(await world.request('home/cmd/refresh')).toMatchObject({ ok: true })
  await until('the end of the progress', () => shown().at(-1) === 'false 1.1.0')
  expect(shown()).not.toContain('true 1.1.0')
  expect(shown().filter((one) => one === 'false 1.0.0')).toHaveLength(1)
})

describe('the progress of an install that the hub has confirmed', () => {
  const app = (patch: AppPatch = {}) => patchApp(undefined, APP, { version: '1.0.0', update_available: true, ...patch })
  const confirmed = () => {
    const clock = new FakeClock()
    const updates = new AppUpdates(clock)
    const isShown = (patch?: AppPatch) => updates.of('home', app(patch)).installing
    const state = { timeouts: 0 }
    updates.start('home', APP, app())
    updates.confirm('home', APP, () => {
      state.timeouts += 1
    })
    expect(isShown()).toBe(true)
    return { clock, updates, isShown, state }
  }

  test('is shown for a minute at most', async () => {
    const { clock, isShown, state } = confirmed()
    await clock.advance(59_999)
    expect(isShown()).toBe(true)
    await clock.advance(1)
    expect([isShown(), state.timeouts]).toEqual([false, 1])
  })

  test.each<[what: string, change: (updates: AppUpdates) => unknown]>([
    ['the hub reports another version', (updates) => updates.of('home', app({ version: '1.1.0' }))],
    ['the hub reports no update', (updates) => updates.of('home', app({ update_available: false }))],
    ['a second attempt fails', (updates) => updates.end('home', APP)],
    ['the app is hidden or removed', (updates) => updates.appRemoved('home', APP)],
    ['the hub is removed', (updates) => updates.hubRemoved('home')],
  ])('ends when %s', (_, change) => {
    const { clock, updates, isShown } = confirmed()
    change(updates)
    expect([isShown(), clock.pending]).toEqual([false, 0])
  })
})
