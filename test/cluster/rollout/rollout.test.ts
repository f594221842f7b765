import { describe, expect } from 'vitest'
import { BROKERS } from '../../support/brokers.ts'
import { APP, Fleet, numbered } from '../../support/fleet.ts'
import { until } from '../../support/until.ts'
import { answered, ended, pass, passUntil, restarts, rollOut, rolloutOf, SHORT_PAUSE_MS, test } from './rollouts.ts'

describe.each(BROKERS)('on %s', (broker) => {
  test('restarts an app on every hub: one first, then batch by batch', async () => {
    await using fleet = await Fleet.open({ broker, hubs: 5 })
    const answer = await rollOut(fleet, { batch: 3, transaction: 't/1' })
    expect(answer).toMatchObject({ ok: true, transaction: 't/1', data: { transaction: 't/1', total: 5 } })
    const end = await ended(fleet, 't/1')
    expect(end).toMatchObject({ state: 'done', reason: null, total: 5, done: 5, failed: [], current: [] })
    expect(restarts(fleet)).toEqual([1, 1, 1, 1, 1])
    const records = fleet.observer.texts('hub2mqtt/rollout/t%2F1').map((text) => JSON.parse(text))
    const waves = new Set(records.map(({ current }) => current.map(({ hub }: { hub: string }) => hub).join()))
    expect([...waves].filter((hubs) => ['h0', 'h1,h2,h3', 'h4'].includes(hubs))).toEqual(['h0', 'h1,h2,h3', 'h4'])
    for (const { current, done } of records) expect(current.length).toBeLessThanOrEqual(done === 0 ? 1 : 3)
  })
})

test('a canary that fails ends the rollout, and nothing else is restarted', async () => {
  await using fleet = await Fleet.open({ hubs: 3 })
  fleet.hub('h0').behave('answer-status', { status: 503, operation: 'restartApp' })
  await rollOut(fleet, { stop_after_failures: 5 })
  const end = await ended(fleet)
  expect(end).toMatchObject({ state: 'stopped', reason: 'canary_failed', done: 0 })
  expect(end.failed).toMatchObject([{ hub: 'h0', app: APP, code: 'hub_failed' }])
  expect(restarts(fleet).slice(1)).toEqual([0, 0])
})

test.for<[string, (fleet: Fleet) => void]>([
  ['is seen', (fleet) => fleet.hub('h0').crash(APP)],
  ['shows only in the crash count', (fleet) => fleet.hub('h0').change(APP, { crashedCount: 7 })],
])('an app whose crash within the pause %s has failed', async ([, happens]) => {
  await using fleet = await Fleet.open({ hubs: 3 })
  await rollOut(fleet, { pause: '1h' })
  await answered(fleet)
  happens(fleet)
  const end = await ended(fleet)
  expect(end).toMatchObject({ state: 'stopped', reason: 'canary_failed' })
  expect(end.failed).toMatchObject([{ hub: 'h0', app: APP, code: 'crashed' }])
  expect(restarts(fleet)).toEqual([1, 0, 0])
})

test('a cancelled rollout ends after the steps in progress', async () => {
  await using fleet = await Fleet.open({ hubs: 4 })
  await rollOut(fleet, { pause: '1h', batch: 2 })
  await answered(fleet)
  const answer = await fleet.ask('rollout-cancel', { transaction: 't' })
  expect(answer).toMatchObject({ ok: true, command: 'rollout-cancel', data: { transaction: 't', total: 4 } })
  expect(rolloutOf(fleet, 't')?.reason).toBe('cancelled')
  fleet.clock.jump(SHORT_PAUSE_MS)
  const end = await ended(fleet)
  expect(end).toMatchObject({ state: 'cancelled', reason: 'cancelled', done: 1, failed: [] })
  expect(restarts(fleet)).toEqual([1, 0, 0, 0])
})

test('an update is installed the same way', async () => {
  await using fleet = await Fleet.open({
    hubs: numbered(2, { apps: [{ id: APP, version: '1.0.0', update: '2.0.0' }] }),
  })
  await rollOut(fleet, { command: 'install' })
  expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2 })
  for (const hub of fleet.hubs.values()) expect(hub.apps.get(APP)?.version).toBe('2.0.0')
})

test('a hub that is offline for a moment gets its step later', async () => {
  await using fleet = await Fleet.open({ hubs: 2 })
  // This is long enough that, even on a slow machine, the hub is still offline at the rollout's first step.
  const back = fleet.hub('h0').reboot({ downMs: 4_000 })
  await until('offline', async () => {
    await pass(fleet, 1_000)
    return fleet.observer.last('hub2mqtt/h0/state') === 'offline'
  })
  await rollOut(fleet)
  await until('the refusal', () =>
    fleet.observer.last(`hub2mqtt/h0/app/${APP}/result/restart`)?.includes('hub_unreachable'),
  )
  await back
  expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2, failed: [] })
})

test('an app that was disabled after the order is not restarted, and has failed', async () => {
  await using fleet = await Fleet.open({ hubs: 2 })
  await rollOut(fleet, { pause: '20s', stop_after_failures: 5 })
  await answered(fleet)
  fleet.hub('h1').change(APP, { enabled: false, state: 'stopped' })
  await until('the new state', () => fleet.observer.last(`hub2mqtt/h1/app/${APP}`)?.includes('"stopped"'))
  const end = await passUntil(fleet, 't', ({ state }) => state !== 'running')
  expect(end.failed).toMatchObject([{ hub: 'h1', code: 'not_running', message: 'The app is disabled.' }])
  expect(restarts(fleet)).toEqual([1, 0])
})

test('an app that does not run a minute after the pause has failed', async () => {
  await using fleet = await Fleet.open({ hubs: 2 })
  await rollOut(fleet, { pause: '20s' })
  await answered(fleet)
  fleet.hub('h0').change(APP, { state: 'stopped' })
  await until('the new state', () => fleet.observer.last(`hub2mqtt/h0/app/${APP}`)?.includes('"stopped"'))
  await pass(fleet, 60_000)
  expect(rolloutOf(fleet, 't')?.state).toBe('running')
  const end = await passUntil(fleet, 't', ({ state }) => state !== 'running')
  expect(end.failed).toMatchObject([{ hub: 'h0', code: 'not_running' }])
  expect(restarts(fleet)).toEqual([1, 0])
})
