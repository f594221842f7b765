/** Tests which orders are accepted, which are refused, and which permissions they need. */
import { describe, expect } from 'vitest'
import { APP, Fleet } from '../../support/fleet.ts'
import { answered, ended, passUntil, RESTART, restarts, rollOut, SHORT_PAUSE_MS, test } from './rollouts.ts'

const ALLOWED = { allow: ['bridge/rollout'] }

test('one rollout runs at a time; the same order again is the same rollout', async () => {
  await using fleet = await Fleet.open({ hubs: 2 })
  const code = async (order: object) => (await fleet.ask('rollout', order)).error?.code ?? 'ok'
  expect(await code({ ...RESTART, app: 'no.such.app', transaction: 'a' })).toBe('unknown_app')
  expect(await code({ ...RESTART, hubs: 'h9', transaction: 'b' })).toBe('unknown_app')
  expect(await code({ ...RESTART, transaction: undefined })).toBe('invalid_payload')
  expect(await code({ ...RESTART, transaction: 'state' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, batch: 0, transaction: 'c' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, command: 'uninstall', transaction: 'd' })).toBe('invalid_payload')
  const order = { ...RESTART, pause: '1h', transaction: 't' }
  expect(await code(order)).toBe('ok')
  await answered(fleet)
  expect(await code({ ...order, transaction: 'u' })).toBe('busy')
  expect(await fleet.ask('rollout', order)).toMatchObject({ ok: true, replayed: true })
  await fleet.ask('rollout-cancel', { transaction: 't' })
  fleet.clock.jump(SHORT_PAUSE_MS)
  await ended(fleet)
  expect(await code({ ...RESTART, transaction: 'u' })).toBe('ok')
  await ended(fleet, 'u')
  expect(restarts(fleet)).toEqual([2, 1])
})

test('of two orders that arrive together, the second is refused', async () => {
  await using fleet = await Fleet.open({ hubs: 2 })
  const order = (transaction: string) => fleet.ask('rollout', { ...RESTART, pause: '1h', transaction })
  const answers = await Promise.all([order('order-1'), order('order-2')])
  expect(answers.map(({ error }) => error?.code ?? 'ok').sort()).toEqual(['busy', 'ok'])
})

test('a rollout can be cancelled as soon as it is ordered: no further step is sent', async () => {
  await using fleet = await Fleet.open({ hubs: 3 })
  const cancel = () => fleet.ask('rollout-cancel', { transaction: 't' })
  const [ordered, cancelled] = await Promise.all([rollOut(fleet), cancel()])
  expect(ordered).toMatchObject({ ok: true, data: { total: 3 } })
  expect(cancelled).toMatchObject({ ok: true, data: { transaction: 't', total: 3 } })
  const end = await ended(fleet)
  expect(end).toMatchObject({ state: 'cancelled', reason: 'cancelled', failed: [] })
  expect(restarts(fleet).slice(1)).toEqual([0, 0])
  // Cancelling the rollout that ended last succeeds, and an unknown name is refused.
  expect(await cancel()).toMatchObject({ ok: true, data: { state: 'cancelled', done: end.done } })
  expect((await fleet.ask('rollout-cancel', { transaction: 'u' })).error?.code).toBe('invalid_payload')
})

test('a rollout finds more hubs with an app than a broker sends messages at a time, also unknown hubs', async () => {
  await using fleet = await Fleet.open({ hubs: 1 })
  const text = fleet.observer.last(`hub2mqtt/h0/app/${APP}`) ?? ''
  const publish = (i: number) => fleet.observer.publish(`hub2mqtt/gone-${i}/app/${APP}`, text, { retain: true })
  for (let from = 0; from < 1_500; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, i) => publish(from + i)))
    // The bridge must have read these: Mosquitto queues only 1,000 messages for it, and drops later ones.
    await fleet.ask('ping')
  }
  expect((await rollOut(fleet)).data).toMatchObject({ total: 1_501 })
  const end = await ended(fleet)
  expect(end.failed).toMatchObject([{ hub: 'gone-0', code: 'unknown_hub' }])
  expect(restarts(fleet)).toEqual([0])
})

describe('permissions', () => {
  test('are required for the rollout and for its command', async () => {
    await using fleet = await Fleet.build({ hubs: 1, config: { commands: {} } })
    const bridge = await fleet.bridge()
    for (const [commands, message] of [
      [{}, 'It is off until commands.allow names bridge/rollout.'],
      [{ ...ALLOWED, deny: ['rollout'] }, 'commands.deny names bridge/rollout.'],
      [{ ...ALLOWED, deny: ['restart'] }, 'commands.deny names restart.'],
      [{ ...ALLOWED, read_only: true }, 'commands.read_only is set.'],
    ] as const) {
      bridge.reload(fleet.config({ commands }))
      expect((await rollOut(fleet)).error).toMatchObject({ code: 'not_allowed', message })
    }
    expect(restarts(fleet)).toEqual([0])
  })

  test('that are withdrawn end the rollout before the next wave', async () => {
    await using fleet = await Fleet.build({ hubs: 3 })
    const bridge = await fleet.bridge()
    await rollOut(fleet, { pause: '20s' })
    await answered(fleet)
    bridge.reload(fleet.config({ commands: { ...ALLOWED, deny: ['restart'] } }))
    const end = await passUntil(fleet, 't', ({ state }) => state !== 'running')
    expect(end).toMatchObject({ state: 'stopped', reason: 'not_allowed', done: 1, failed: [] })
    expect(restarts(fleet)).toEqual([1, 0, 0])
  })
})
