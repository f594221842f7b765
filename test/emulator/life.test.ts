import { describe, expect } from 'vitest'
import { Apps, simulateActivity, wander } from '../../src/emulator/apps.ts'
import { DEFAULT_APPS, DEFAULT_STORE } from '../../src/emulator/population.ts'
import type { AppSeed, Flavour } from '../../src/emulator/records.ts'
import { Timers } from '../../src/emulator/timers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { BLINDS, test as base, DOORBELL, events, HUE, PUMP } from './support.ts'

function appsOf(flavour: Flavour = 'newer', seeds: readonly AppSeed[] = DEFAULT_APPS, settleMs = 200) {
  const clock = new FakeClock()
  const timers = new Timers(clock)
  const told: string[] = []
  const sendEvent = (event: string, payload: unknown) => {
    const { id, state } = Object(payload)
    told.push(event === 'app.update' ? `${id} ${state}` : `${event} ${id}`)
  }
  const apps = new Apps(seeds, { flavour, timers, settleMs, store: DEFAULT_STORE, sendEvent })
  return { apps, clock, timers, told }
}

const test = base.extend<{ readonly simulated: ReturnType<typeof appsOf> }>({
  simulated: async ({ task: _ }, use) => use(appsOf()),
})

describe('an app', () => {
  test('takes some time from stopped to running', async ({ simulated: { apps, clock, told } }) => {
    apps.enable(BLINDS)
    expect(told).toEqual([`${BLINDS} starting`])
    await clock.advance(199)
    expect(apps.records.get(BLINDS)?.state).toBe('starting')
    await clock.advance(1)
    expect(apps.records.get(BLINDS)?.state).toBe('running')
  })

  test('goes through every state when it restarts', async ({ simulated: { apps, clock, told } }) => {
    apps.restart(HUE)
    await clock.advance(1000)
    expect(told).toEqual(['stopping', 'stopped', 'starting', 'running'].map((state) => `${HUE} ${state}`))
  })

  test('follows a second command while the first one is in progress', async ({ simulated: { apps, clock, told } }) => {
    apps.restart(HUE)
    await clock.advance(250)
    apps.disable(HUE)
    await clock.advance(1000)
    expect(told).toEqual([`${HUE} stopping`, `${HUE} stopped`, `${HUE} stopped`])
    expect(clock.pending).toBe(0)
  })

  test('sends no event for a command that changes nothing', ({ simulated: { apps, told } }) => {
    apps.enable(HUE)
    apps.disable(BLINDS)
    apps.restart(BLINDS)
    expect(told).toEqual([])
  })

  test('no longer changes its state after it is uninstalled', async ({ simulated: { apps, clock, told } }) => {
    apps.restart(HUE)
    apps.uninstall(HUE)
    await clock.advance(1000)
    expect(told).toEqual([`${HUE} stopping`, `app.delete ${HUE}`])
  })

  test.each([
    ['older', { state: 'stopped', exitCode: 1, exitCount: 1 }, { crashed: false, exitCode: null, exitCount: 1 }],
    ['newer', { state: 'crashed', crashedCount: 1 }, { crashed: false, crashedMessage: null, crashedCount: 1 }],
  ] as const)('crashes and recovers after a restart, %s', (flavour, crashed, cured) => {
    const { apps } = appsOf(flavour, DEFAULT_APPS, 0)
    apps.crash(HUE, 'Error: no')
    expect(apps.records.get(HUE)).toMatchObject({ crashed: true, crashedMessage: 'Error: no', ...crashed })
    apps.restart(HUE)
    expect(apps.records.get(HUE)).toMatchObject({ state: 'running', ...cured })
  })

  test('that is disabled gets an update without being started', () => {
    const { apps } = appsOf('newer', [{ id: PUMP, enabled: false, update: '2.5.0' }], 0)
    apps.install({ id: PUMP })
    expect(apps.records.get(PUMP)).toMatchObject({ version: '2.5.0', updateAvailable: false, state: 'stopped' })
  })

  test('may have an update that the store does not list', () => {
    const { apps } = appsOf('older', [{ id: 'own.app', version: '1.0.0', update: '1.1.0' }], 0)
    apps.install({ id: 'own.app' })
    expect(apps.records.get('own.app')).toMatchObject({ version: '1.1.0', updateAvailable: null })
  })
})

describe('time', () => {
  test('changes the usage of running apps only', async ({ simulated: { apps, clock, timers, told } }) => {
    simulateActivity(apps, timers, { usageMs: 1000, crashMs: 0, random: () => 0.75 })
    await clock.advance(1000)
    expect(told).toHaveLength(6)
    expect(told.join()).not.toMatch(`${BLINDS}|${DOORBELL}`)
    expect(apps.records.get(HUE)?.usage).toEqual({ cpu: 0.026, mem: 61_841_696 })
    await clock.advance(1000)
    expect(told).toHaveLength(12)
  })

  test('makes an app crash now and then, and starts it again', async ({ simulated: { apps, clock, timers } }) => {
    simulateActivity(apps, timers, { usageMs: 0, crashMs: 1000, random: () => 0 })
    await clock.advance(1000)
    expect(apps.records.get(HUE)).toMatchObject({ crashed: true, crashedMessage: 'Error: out of luck' })
    await clock.advance(900)
    expect(apps.records.get(HUE)).toMatchObject({ crashed: false, state: 'running' })
  })

  test('leaves no timer after it is stopped', async ({ simulated: { apps, clock, timers } }) => {
    simulateActivity(apps, timers, { usageMs: 10, crashMs: 10, random: () => 0 })
    apps.restart(HUE)
    await clock.advance(100)
    timers.stop()
    expect(clock.pending).toBe(0)
    timers.after(1, () => {})
    expect(clock.pending).toBe(0)
  })

  test('keeps usage plausible for any initial value', () => {
    expect(wander({ cpu: 1, mem: 0 }, () => 1)).toEqual({ cpu: 1, mem: 10_000_000 })
    expect(wander(undefined, () => 0)).toEqual({ cpu: 0, mem: 10_000_000 })
  })
})

describe('the methods of a hub', () => {
  test('change apps like a request, and send no event if silent', async ({ hub, session }) => {
    hub.crash(HUE, 'Error: told to', { silent: true })
    hub.change(PUMP, { autoupdate: true }, { silent: true })
    hub.uninstall(BLINDS, { silent: true })
    hub.install({ id: 'new.app' }, { silent: true })
    expect(await events(hub, session)).toEqual([])
    expect(hub.apps.get(HUE)).toMatchObject({ crashed: true })
    expect(hub.apps.has(BLINDS)).toBe(false)
    hub.recover(HUE)
    hub.install({ id: 'newer.app', name: 'New' })
    expect(await events(hub, session)).toMatchObject([
      ['app.update', { id: HUE, state: 'starting', crashed: false }],
      ['app.update', { id: HUE, state: 'running' }],
      ['app.create', { id: 'newer.app', name: 'New', state: 'running' }],
    ])
  })

  test('throw for an unknown app', ({ hub }) => {
    expect(() => hub.crash('nobody')).toThrow('no app "nobody"')
    expect(() => hub.install('nobody')).toThrow('no app "nobody" in the store')
  })
})
