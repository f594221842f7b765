/** Tests which orders are accepted, which are refused, and which permissions they need. */
import { describe, expect } from 'vitest'
import { APP, RESTART, SHORT_PAUSE_MS, Street, test } from './street.ts'

test('one rollout runs at a time; the same order again is the same rollout', async () => {
  await using street = await Street.open({ houses: 2 })
  const code = async (order: object) => (await street.ask('rollout', order)).error?.code ?? 'ok'
  expect(await code({ ...RESTART, app: 'no.such.app', transaction: 'a' })).toBe('unknown_app')
  expect(await code({ ...RESTART, hubs: 'h9', transaction: 'b' })).toBe('unknown_app')
  expect(await code({ ...RESTART, transaction: undefined })).toBe('invalid_payload')
  expect(await code({ ...RESTART, transaction: 'state' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, batch: 0, transaction: 'c' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, command: 'uninstall', transaction: 'd' })).toBe('invalid_payload')
  const order = { ...RESTART, pause: '1h', transaction: 't' }
  expect(await code(order)).toBe('ok')
  await street.answered()
  expect(await code({ ...order, transaction: 'u' })).toBe('busy')
  expect(await street.ask('rollout', order)).toMatchObject({ ok: true, replayed: true })
  await street.ask('rollout-cancel', { transaction: 't' })
  street.clock.jump(SHORT_PAUSE_MS)
  await street.ended()
  expect(await code({ ...RESTART, transaction: 'u' })).toBe('ok')
  await street.ended('u')
  expect(street.asked()).toEqual([2, 1])
})

test('a rollout can be cancelled as soon as it is ordered: no further step is sent', async () => {
  await using street = await Street.open({ houses: 3 })
  const cancel = () => street.ask('rollout-cancel', { transaction: 't' })
  const [ordered, cancelled] = await Promise.all([street.rollOut(), cancel()])
  expect(ordered).toMatchObject({ ok: true, data: { total: 3 } })
  expect(cancelled).toMatchObject({ ok: true, data: { transaction: 't', total: 3 } })
  const end = await street.ended()
  expect(end).toMatchObject({ state: 'cancelled', reason: 'cancelled', failed: [] })
  expect(street.asked().slice(1)).toEqual([0, 0])
  // Cancelling the rollout that ended last succeeds, and an unknown name is refused.
  expect(await cancel()).toMatchObject({ ok: true, data: { state: 'cancelled', done: end.done } })
  expect((await street.ask('rollout-cancel', { transaction: 'u' })).error?.code).toBe('invalid_payload')
})

test('a rollout finds more hubs with an app than a broker sends messages at a time, also unknown hubs', async () => {
  await using street = await Street.open({ houses: 1 })
  const text = street.observer.last(`hub2mqtt/h0/app/${APP}`) ?? ''
  const publish = (i: number) => street.observer.publish(`hub2mqtt/gone-${i}/app/${APP}`, text, { retain: true })
  for (let from = 0; from < 1_500; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, i) => publish(from + i)))
    // The bridge must have read these: Mosquitto queues only 1,000 messages for it, and drops later ones.
    await street.ask('ping')
  }
  expect((await street.rollOut()).data).toMatchObject({ total: 1_501 })
  const end = await street.ended()
  expect(end.failed).toMatchObject([{ hub: 'gone-0', code: 'unknown_hub' }])
  expect(street.asked()).toEqual([0])
})

describe('permissions', () => {
  test('are required for the rollout and for its command', async () => {
    await using street = await Street.build({ houses: 1, commands: '{}' })
    const bridge = await street.bridge()
    for (const [commands, message] of [
      ['{}', 'It is off until commands.allow names bridge/rollout.'],
      ['{allow: [bridge/rollout], deny: [rollout]}', 'commands.deny names bridge/rollout.'],
      ['{allow: [bridge/rollout], deny: [restart]}', 'commands.deny names restart.'],
      ['{allow: [bridge/rollout], read_only: true}', 'commands.read_only is set.'],
    ] as const) {
      bridge.reload(street.file(commands))
      expect((await street.rollOut()).error, commands).toMatchObject({ code: 'not_allowed', message })
    }
    expect(street.asked()).toEqual([0])
  })

  test('that are withdrawn end the rollout before the next wave', async () => {
    await using street = await Street.build({ houses: 3 })
    const bridge = await street.bridge()
    await street.rollOut({ pause: '20s' })
    await street.answered()
    bridge.reload(street.file('{allow: [bridge/rollout], deny: [restart]}'))
    const end = await street.passUntil('t', ({ state }) => state !== 'running')
    expect(end).toMatchObject({ state: 'stopped', reason: 'not_allowed', done: 1, failed: [] })
    expect(street.asked()).toEqual([1, 0, 0])
  })
})
