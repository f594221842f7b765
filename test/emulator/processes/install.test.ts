import { describe, expect, test } from 'vitest'
import { JumpClock } from '../../support/jump-clock.ts'
import { until } from '../../support/until.ts'
import { APP, fill, isAlive, running, runningApp, written } from './support.ts'

const version = (version: string, code = '', settings = {}) =>
  written(`export default async ({ app }) => { ${code}; app.api.get('/', () => app.version) }`, { version, settings })

describe('installing from the store', () => {
  test('adds a new app to the hub with its first settings, and starts it', async () => {
    const other = written('export default () => {}', { id: 'com.example.other', settings: { a: 1 } })
    const hub = await running(version('1.0.0'), { store: [other] })
    hub.events.length = 0
    await hub.apps.install({ id: 'com.example.other' })
    expect(hub.events[0]).toMatchObject(['app.create', { id: 'com.example.other', origin: 'appstore', enabled: true }])
    await until('the start', () => hub.apps.records.get('com.example.other')?.state === 'running')
    expect(Object.fromEntries(hub.apps.settings('com.example.other'))).toEqual({ a: 1 })
    await expect(hub.apps.install({ id: 'com.example.nothing' })).rejects.toMatchObject({ status: 404 })
  })

  test('replaces an app with the newer version that was offered and its new settings, as another process', async () => {
    const store = [version('2.0.0', '', { kept: 2, added: 2 })]
    const hub = await running(version('1.0.0'), { store, settings: { kept: 1 } })
    expect(hub.record.updateAvailable).toEqual({ version: '2.0.0', permissions: [] })
    const former = hub.apps.pid(APP)
    await hub.apps.install({ id: APP })
    expect(hub.record).toMatchObject({ version: '2.0.0', state: 'running', updateAvailable: null })
    expect(await hub.ask('GET /')).toBe('2.0.0')
    expect(isAlive(former)).toBe(false)
    expect(Object.fromEntries(hub.apps.settings(APP))).toEqual({ kept: 1, added: 2 })
    expect(hub.state.apps()).toMatchObject([{ version: '2.0.0' }])
  })

  test.each([
    ['crashes at its start', 'throw new Error("broken build")', /2\.0\.0 does not start: Error: broken build/],
    ['ends', 'process.exit(0)', /exited with code 0/],
  ])('restores the previous version and its settings if the new one %s', async (_name, code, reason) => {
    const store = [version('2.0.0', code, { kept: 2, added: 2 })]
    const hub = await running(version('1.0.0'), { store, settings: { kept: 1 } })
    await expect(hub.apps.install({ id: APP })).rejects.toThrow(reason)
    await hub.untilState('running')
    expect(await hub.ask('GET /')).toBe('1.0.0')
    expect(hub.record).toMatchObject({ version: '1.0.0', crashed: false, exitCount: 0 })
    expect(hub.record.updateAvailable).toMatchObject({ version: '2.0.0' })
    expect(hub.state.apps()).toMatchObject([{ version: '1.0.0', crashed: false }])
    expect(Object.fromEntries(hub.apps.settings(APP))).toEqual({ kept: 1 })
  })

  test('restores the previous version disabled if the app was disabled in between', async () => {
    const slow = 'await new Promise((resolve) => setTimeout(resolve, 300)); throw new Error("late")'
    const hub = await running(version('1.0.0'), { store: [version('2.0.0', slow)] })
    const installing = hub.apps.install({ id: APP }).catch((error: unknown) => error)
    await until('the trial', () => hub.record.version === '2.0.0' && hub.record.state === 'starting')
    hub.apps.disable(APP)
    await installing
    await hub.untilState('stopped')
    expect(hub.record).toMatchObject({ enabled: false, crashed: false })
    expect(hub.apps.pid(APP)).toBeUndefined()
    expect(hub.state.apps()).toMatchObject([{ enabled: false }])
  })

  test('offers an update soon after the store was filled', async () => {
    const clock = new JumpClock()
    const hub = await running(version('1.0.0'), { clock })
    expect(hub.record.updateAvailable).toBeNull()
    await fill(hub.store, [version('1.1.0')])
    clock.jump(5000)
    await until('the offer', () => hub.record.updateAvailable !== null)
    expect(hub.events.at(-1)).toMatchObject(['app.update', { updateAvailable: { version: '1.1.0' } }])
  })

  test('leaves a disabled app disabled', async () => {
    const hub = await running(version('1.0.0'), { store: [version('2.0.0')] })
    hub.apps.disable(APP)
    await hub.untilState('stopped')
    await hub.apps.install({ id: APP })
    expect(hub.record).toMatchObject({ version: '2.0.0', state: 'stopped', enabled: false })
  })

  test('repairs a crashed app', async () => {
    const hub = await running(version('1.0.0', 'throw new Error("x")'), { store: [version('2.0.0')] })
    await hub.untilCrashed()
    await hub.apps.install({ id: APP })
    expect(hub.record).toMatchObject({ version: '2.0.0', state: 'running', crashed: false, crashedMessage: null })
    expect(hub.state.apps()).toMatchObject([{ crashed: false, crashedCount: 1 }])
  })

  test('is refused while the same app is being installed', async () => {
    const hub = await running(version('1.0.0'), { store: [version('2.0.0')] })
    const first = hub.apps.install({ id: APP })
    await expect(hub.apps.install({ id: APP })).rejects.toMatchObject({ status: 409 })
    await first
  })
})

test('the texts of an app come from its folder, by language', async () => {
  const hub = await runningApp({
    'app.js': 'export default () => {}',
    'locales/en.json': '{"a":"b"}',
    'locales/de.json': '{',
    'locales/x.txt': '1',
  })
  expect(hub.apps.locales(APP)).toEqual({ en: { a: 'b' } })
})
