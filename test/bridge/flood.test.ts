import { setImmediate } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { Message } from '../../src/mqtt/types.ts'
import { until } from '../support/until.ts'
import { APP, app, openDesk, test } from './desk.ts'

describe('the same command again', () => {
  test('is not executed if it is a write, whatever reads and refused writes arrived in between', async () => {
    const desk = await openDesk({ hub: { apps: [{ id: APP, settings: { x: 'x'.repeat(500_000) } }] } })
    const restart = { item: 'apps', method: 'POST', path: `/app/${APP}/restart`, transaction: 't' }
    const writes: [string, string, Partial<Message>?][] = [
      [app('restart'), '{"transaction":"t"}'],
      [app('get-std'), '{"transaction":"t"}'],
      [app('guard'), '{"transaction":"t","snooze":"1h"}'],
      ['home/cmd/call', JSON.stringify(restart)],
      ['bridge/cmd/log-level', 'debug', { correlationData: Buffer.from('t') }],
      ['bridge/cmd/rollout', `{"transaction":"t","command":"restart","app":"${APP}"}`],
    ]
    for (const write of writes) expect(await desk.ask(...write), write[0]).toMatchObject({ ok: true })
    const done = desk.writes()
    for (let i = 0; i < 10; i += 1) await desk.ask(app('get-settings'), `{"transaction":${i}}`)
    // Send 20,002 further transactions: more than the 20,000 that the bridge remembers.
    for (let i = 0; i < 10_001; i += 1) {
      desk.hand('bridge/cmd/ping', `{"transaction":${i}}`)
      desk.hand('home/app/gone/cmd/restart', `{"transaction":${i}}`)
      if (i % 100 === 0) await setImmediate()
    }
    await until('all', () => desk.sent.length === writes.length + 10 + 2 * 10_001)
    desk.sent.length = 0
    for (const write of writes) expect(await desk.ask(...write), write[0]).toMatchObject({ ok: true, replayed: true })
    expect(desk.writes()).toEqual(done)
    expect(desk.levels).toEqual(['debug'])
    expect(await desk.ask(app('get-settings'), '{"transaction":0}')).not.toHaveProperty('replayed')
  })

  test('is refused with busy, and not sent, if too many writes are already remembered', async () => {
    const desk = await openDesk()
    await desk.ask(app('restart'), '{"transaction":"t"}')
    for (let i = 1; i < 100_000; i += 1) {
      desk.hand('bridge/cmd/log-level', 'info', { correlationData: Buffer.from(`${i}`) })
      // Yield regularly, because 100,000 pending commands would use hundreds of megabytes.
      if (i % 100 === 0) await setImmediate()
    }
    await until('all', () => desk.sent.length === 100_000)
    desk.sent.length = 0
    expect(await desk.ask(app('restart'), '{"transaction":"u"}')).toMatchObject({ error: { code: 'busy' } })
    expect(await desk.ask(app('restart'))).toMatchObject({ error: { code: 'busy' } })
    expect(desk.writes()).toEqual(['restartApp'])
    expect(await desk.ask(app('restart'), '{"transaction":"t"}')).toMatchObject({ ok: true, replayed: true })
    // The bridge still executes commands that it does not have to remember: QoS 0, reads, and cancelling a rollout.
    expect(await desk.ask(app('restart'), '', { qos: 0 })).toMatchObject({ ok: true })
    expect(await desk.ask(app('get'), '{"transaction":"t"}')).toMatchObject({ ok: true })
    expect(await desk.ask('bridge/cmd/rollout-cancel', '{"transaction":"t"}')).toMatchObject({ ok: true })
    await desk.clock.advance(300_000)
    expect(await desk.ask(app('restart'), '{"transaction":"u"}')).toMatchObject({ ok: true })
    expect(desk.writes()).toEqual(['restartApp', 'restartApp', 'restartApp'])
  })
})
