import { describe, expect } from 'vitest'
import { COMMANDS } from '../../src/contract/commands.ts'
import { until } from '../support/until.ts'
import { APP, app, openDesk, test } from './desk.ts'

describe('an answer', () => {
  test('names its command and the result', async ({ desk }) => {
    await desk.ask(app('get-setting/x'), '{"transaction":"t"}', { receivedAt: desk.clock.elapsed() - 12.4 })
    const head = { command: 'get-setting', hub: 'home', app: APP, duration_ms: 12 }
    expect(desk.sent[0]?.topic).toBe(`b/home/app/${APP}/result/get-setting/x`)
    expect(desk.sent[0]?.answer).toEqual({ ok: true, data: 1, transaction: 't', ...head })
    expect(desk.ends).toMatchObject([{ command: 'get-setting', outcome: 'ok', ms: 12.4 }])
    const refused = await desk.ask('home/cmd/install', '{"id":"","transaction":7}')
    expect(refused).toMatchObject({ ok: false, command: 'install', app: null, transaction: 7 })
    expect(Object.keys(refused)).toEqual(['ok', 'command', 'hub', 'app', 'transaction', 'error', 'duration_ms'])
    expect(desk.ends[1]).toMatchObject({ command: 'hub/install', outcome: 'invalid_payload' })
  })

  test('is sent to the response topic if that is permitted', async ({ desk }) => {
    const spoken = ['b/home/state', `b/${app('restart')}`]
    for (const responseTopic of ['me/answers', ...spoken]) await desk.ask('bridge/cmd/ping', '', { responseTopic })
    await desk.ask('bridge/cmd/ping')
    expect(desk.sent.map(({ topic }) => topic)).toEqual(['me/answers', ...Array(3).fill('b/bridge/result/ping')])
    desk.world.policy = { ...desk.world.policy, response_topics: [] }
    for (const responseTopic of ['homeassistant/x', 'x']) await desk.ask('bridge/cmd/ping', '', { responseTopic })
    expect(desk.sent.slice(4).map(({ topic }) => topic)).toEqual(['b/bridge/result/ping', 'x'])
  })

  test('that is too large is replaced with an error', async ({ desk }) => {
    await desk.ask(app('get'), '{"transaction":"t"}', { correlationData: Buffer.from('c') })
    const replacement = desk.sent[0]?.options.ifRefused?.('too_large')
    expect(JSON.parse(replacement?.payload ?? '')).toMatchObject({
      ok: false,
      transaction: 't',
      error: { code: 'too_large' },
    })
    expect(replacement?.options).toMatchObject({
      isAnswer: true,
      correlationData: Buffer.from('c'),
      userProperties: { 'error-code': 'too_large' },
    })
  })

  test('that is too large is sent without a long transaction, which may be the cause', async ({ desk }) => {
    for (const length of [256, 257]) await desk.ask('bridge/cmd/ping', '', { correlationData: Buffer.alloc(length) })
    const marks = desk.sent.map(({ options }) => options.ifRefused?.('too_large')?.options?.correlationData)
    expect(marks).toEqual([Buffer.alloc(256), undefined])
  })

  test('is summarised for statistics without its data, under its result topic', async ({ desk }) => {
    await desk.ask(app('get-setting/x'), '{"transaction":"t"}', { responseTopic: 'me/answers' })
    await desk.ask(app('dance'))
    expect(desk.ends.map(({ result }) => result)).toEqual([
      `b/home/app/${APP}/result/get-setting/x`,
      `b/home/app/${APP}/result/dance`,
    ])
    const [done, failed] = desk.ends.map(({ summary }) => JSON.parse(summary()))
    expect(done).toMatchObject({ ok: true, command: 'get-setting', transaction: 't', data: null })
    expect(failed).toMatchObject({ ok: false, error: { code: 'unknown_command' } })
  })

  test('is also sent for a command of which only the transaction can be read', async ({ desk }) => {
    expect(await desk.ask(app('restart'), '{"transaction":"t","oh":1}')).toMatchObject({
      transaction: 't',
      error: { code: 'invalid_payload' },
    })
    expect(await desk.ask(app('nonsense'), '{"transaction":"u"}')).toMatchObject({ transaction: 'u' })
    expect(await desk.ask(app('restart'), Buffer.from([0xff]))).toMatchObject({ transaction: null })
  })

  test('is also sent after a bug in this program, and the log has the error', async ({ desk }) => {
    expect(await desk.ask('bridge/cmd/log-level', 'trace')).toMatchObject({
      ok: false,
      error: { code: 'hub_failed', message: 'A bug in the bridge; see its log.' },
    })
    expect(desk.log).toMatchObject([
      { level: 50, err: { message: 'a mistake' }, message: expect.stringMatching(/bridge/) },
    ])
  })

  test('to a write that the hub did not answer says that it may have happened; to a read, that the hub is unreachable', async () => {
    const desk = await openDesk()
    desk.emulated.behave('execute-then-reset', { operation: ['restartApp', 'getAppLocales'] })
    expect(await desk.ask(app('restart'))).toMatchObject({ error: { code: 'outcome_unknown' } })
    expect(await desk.ask(app('get-locales'))).toMatchObject({ error: { code: 'hub_unreachable' } })
    expect(desk.writes()).toEqual(['restartApp'])
  })
})

describe('a message that is refused without a request to the hub', () => {
  test.each([
    ['home/app/the.app/cmd/dance', '', 'unknown_command'],
    ['home/app/the.app/cmd/restart/x', '', 'unknown_command'],
    ['elsewhere/cmd/speak', 'x', 'unknown_hub'],
    ['elsewhere/cmd/dance', 'x', 'unknown_hub'],
    ['home/app/gone/cmd/restart', '', 'unknown_app'],
    ['home/app/the%2Eapp/cmd/restart', '', 'unknown_app'],
    ['home/app/the.ap%70/cmd/restart', '', 'unknown_app'],
    ['h%6Fme/app/the.app/cmd/restart', '', 'unknown_hub'],
    ['home/app/the.app/cmd/rest%61rt', '', 'unknown_command'],
    ['home/app/b%c3%bchne/cmd/restart', '', 'unknown_app'],
  ])('%s %j: %s', async (topic, payload, code) => {
    const desk = await openDesk()
    expect(await desk.ask(topic, payload)).toMatchObject({ ok: false, error: { code } })
    expect(desk.writes()).toEqual([])
  })

  test('may have a name of 256 characters in the topic, however long its percent-encoding is, and no longer one', async () => {
    const desk = await openDesk()
    const ask = (name: string) => desk.ask(app(`set-setting/${encodeURIComponent(name)}`), '1')
    expect(await ask('💡'.repeat(128))).toMatchObject({ ok: true })
    expect(await ask(`${'ü'.repeat(257)}`)).toMatchObject({ error: { message: 'A name has at most 256 characters.' } })
  })

  test('with an invalid setting name is answered with the reason', async ({ desk }) => {
    for (const name of ['a/b', '%', '%61'])
      expect(await desk.ask(app(`set-setting/${name}`), '1'), name).toMatchObject({
        error: { code: 'invalid_payload', message: 'The topic names no setting.' },
      })
    expect(desk.writes()).toEqual([])
  })

  test('is one that configuration does not allow, at all or with its input', async ({ desk }) => {
    desk.world.policy = { allow: [], deny: ['autoupdate'], read_only: false }
    for (const [topic, payload] of [
      [app('autoupdate'), 'ON'],
      [app('uninstall'), '{}'],
      [app('update'), '{"autoupdate":true}'],
    ] as const)
      expect(await desk.ask(topic, payload), topic).toMatchObject({ error: { code: 'not_allowed' } })
    expect(desk.writes()).toEqual([])
  })

  test('is retained: it is cleared, and clearing it is no command', async ({ desk }) => {
    expect(await desk.ask(app('restart'), '{"transaction":"t"}', { retain: true })).toMatchObject({
      transaction: 't',
      error: { code: 'retained' },
    })
    desk.hand(app('restart'), '', { retain: true })
    desk.hand('home/state', 'x')
    await desk.ask('bridge/cmd/ping')
    expect(desk.cleared).toEqual([`b/${app('restart')}`])
    expect(desk.sent).toHaveLength(2)
    expect(desk.writes()).toEqual([])
  })

  test('is an empty value under MQTT 3.1.1, which looks like a cleared topic', async ({ desk }) => {
    desk.world.protocol = '3.1.1'
    expect(await desk.ask(app('set-setting/x'))).toMatchObject({
      error: { code: 'invalid_payload', message: expect.stringContaining('send "" for an empty text') },
    })
    expect(desk.writes()).toEqual([])
    for (const [topic, payload] of [
      [app('set-setting/x'), '""'],
      [app('restart'), ''],
    ] as const)
      expect(await desk.ask(topic, payload)).toMatchObject({ ok: true })
    desk.world.protocol = '5'
    expect(await desk.ask(app('set-setting/x'))).toMatchObject({ ok: true })
    expect(desk.emulated.settings(APP)['x']).toBe('')
  })
})

test('every command is refused if it is retained, too old, or not UTF-8', async ({ desk }) => {
  const places = { app: `home/app/${APP}`, hub: 'home', bridge: 'bridge' } as const
  for (const { target, name, argument } of COMMANDS) {
    const topic = `${places[target]}/cmd/${name}${argument === undefined ? '' : '/x'}`
    const codes: unknown[] = []
    for (const [payload, more] of [
      [Buffer.from('{}'), { retain: true }],
      [Buffer.from('{}'), { receivedAt: -10_000 }],
      [Buffer.from([0x7b, 0xff, 0x7d]), {}],
    ] as const)
      codes.push(Object((await desk.ask(topic, payload, more))['error']).code)
    expect([topic, ...codes]).toEqual([topic, 'retained', 'expired', 'invalid_payload'])
  }
  expect(desk.operations()).toEqual([])
})

describe('an expired command', () => {
  const soon = (ms: number) => JSON.stringify({ expires_at: Date.parse('2026-01-01T00:00:00Z') + ms })

  test.each([
    [soon(0), {}, 'expired'],
    [soon(1), {}, undefined],
    ['', { expiresInMs: 0 }, 'expired'],
    ['', { expiresInMs: 1 }, undefined],
    ['', { receivedAt: -10_000 }, 'expired'],
    ['', { receivedAt: -9_999 }, undefined],
    ['', { receivedAt: -10_000, expiresInMs: 60_000 }, 'expired'],
    [soon(60_000), { receivedAt: -10_000 }, 'expired'],
    ['', { connection: 2 }, 'expired'],
  ])('%s %j: %s', async (payload, more, code) => {
    const desk = await openDesk()
    const answer = await desk.ask(app('restart'), payload, more)
    expect(answer['ok'] === true ? undefined : answer['error']).toEqual(
      code === undefined ? undefined : expect.objectContaining({ code }),
    )
    expect(desk.writes()).toEqual(code === undefined ? ['restartApp'] : [])
  })

  test.each([
    ['', {}, 10_000],
    [soon(4000), {}, 4000],
    ['', { expiresInMs: 3000 }, 3000],
    ['', { expiresInMs: 30_000 }, 10_000],
  ])('that waited behind another one is refused: %s %j', async (payload, more, ms) => {
    const desk = await openDesk()
    desk.emulated.behave('slow-headers', { ms: 300, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('restart'), payload, more)
    await desk.clock.advance(ms - 1)
    expect(desk.sent).toEqual([])
    await desk.clock.advance(1)
    expect(desk.sent).toMatchObject([{ answer: { command: 'restart', error: { code: 'expired' } } }])
    await until('the other', () => desk.sent.length === 2)
    expect(desk.writes()).toEqual(['disableApp'])
  })
})

describe('the same command again', () => {
  test('is executed again five minutes after the first, however often it was repeated before', async ({ desk }) => {
    for (const ms of [0, 200_000, 99_999, 1]) {
      await desk.clock.advance(ms)
      await desk.ask(app('restart'), '{"transaction":"t"}')
    }
    expect(desk.sent.map(({ answer }) => answer['replayed'])).toEqual([undefined, true, true, undefined])
    expect(desk.writes()).toEqual(['restartApp', 'restartApp'])
  })

  test('while it runs is not executed either, unless it is for another app, another command or another transaction', async ({
    desk,
  }) => {
    const transactions = ['1', '"1"', '1', '2', '1']
    const topics = [app('restart'), app('restart', 'another.app'), app('disable')]
    for (const topic of topics)
      for (const transaction of transactions) desk.hand(topic, `{"transaction":${transaction}}`)
    await until('all', () => desk.sent.length === topics.length * transactions.length)
    expect(desk.sent.filter(({ answer }) => answer['replayed'] === true)).toHaveLength(topics.length * 2)
    expect(desk.sent.filter(({ answer }) => answer['ok'] !== true)).toEqual([])
    expect(desk.writes().sort()).toEqual([...Array(3).fill('disableApp'), ...Array(6).fill('restartApp')])
  })

  test('without a transaction is a new one, unless the broker redelivers it', async ({ desk }) => {
    for (const dup of [false, false, true]) await desk.ask(app('restart'), '', { dup })
    expect(desk.sent.map(({ answer }) => answer['replayed'])).toEqual([undefined, undefined, true])
    expect(desk.writes()).toEqual(['restartApp', 'restartApp'])
  })

  test('is executed if the answer to the first one allows another attempt', async ({ desk }) => {
    await desk.ask(app('restart'), '{"transaction":"t"}', { connection: 2 })
    expect(await desk.ask(app('restart'), '{"transaction":"t"}')).toMatchObject({ ok: true })
  })
})

describe('a command is reported', () => {
  test('in the audit if it is a write or no valid command, in the debug log if it is a read', async ({ desk }) => {
    for (const [topic, payload] of [
      [app('restart'), '{"transaction":"t"}'],
      [app('restart'), '{"transaction":"t"}'],
      [app('dance'), ''],
      ['bridge/cmd/log-level', 'debug'],
      ['bridge/cmd/ping', ''],
      [app('get-settings'), ''],
    ] as const)
      await desk.ask(topic, payload)
    const line = { command: 'restart', hub: 'home', app: APP, transaction: 't', outcome: 'ok', duration_ms: 0 }
    expect(desk.audit).toMatchObject([
      { message: 'command', ...line, replayed: false },
      { ...line, replayed: true },
      { command: 'dance', outcome: 'unknown_command' },
      { command: 'log-level', hub: null, app: null, outcome: 'ok' },
    ])
    expect(desk.log).toMatchObject([
      { level: 20, message: 'command', command: 'ping' },
      { level: 20, message: 'command', command: 'get-settings' },
    ])
    expect(desk.levels).toEqual(['debug'])
    expect(desk.ends.map(({ command, outcome }) => `${command} ${outcome}`)).toEqual([
      'restart ok',
      'restart ok',
      'unknown unknown_command',
      'bridge/log-level ok',
      'bridge/ping ok',
      'get-settings ok',
    ])
  })

  test('to subscribers for each write that was not executed, and for nothing else', async ({ desk }) => {
    desk.emulated.behave('answer-status', { status: 503, operation: ['restartApp', 'getAppLocales'] })
    for (const [topic, payload] of [
      [app('restart'), '{"transaction":"t"}'],
      [app('restart'), '{"transaction":"t"}'],
      ['home/cmd/install', '{}'],
      [app('get-locales'), ''],
      [app('disable'), ''],
      [app('dance'), ''],
      ['elsewhere/app/x/cmd/restart', ''],
      ['bridge/cmd/log-level', 'loud'],
    ] as const)
      await desk.ask(topic, payload)
    expect(desk.failed).toEqual([
      { app: APP, command: 'restart', code: 'hub_failed', transaction: 't' },
      { app: null, command: 'install', code: 'invalid_payload', transaction: null },
    ])
  })

  test('not for each of a flood of refusals, but each time that the hub received a request', async ({ desk }) => {
    for (let i = 0; i < 70; i += 1) await desk.ask(app('restart'), '[]')
    expect(desk.failed).toHaveLength(60)
    desk.emulated.behave('answer-status', { status: 503, operation: 'restartApp' })
    await desk.ask(app('restart'))
    expect(desk.failed).toHaveLength(61)
    expect(desk.audit).toHaveLength(61)
    void desk.dispatcher.stop()
    expect(desk.audit.at(-1)).toMatchObject({ refused: 10 })
  })

  test('despite a flood of refusals for other apps', async ({ desk }) => {
    for (let i = 0; i < 70; i += 1) await desk.ask(app('restart'), '[]')
    for (let i = 0; i < 70; i += 1) await desk.ask(`home/app/invented${i}/cmd/restart`, '[]')
    for (let i = 0; i < 70; i += 1) await desk.ask(app(`unset-setting/invented${i}`), '[]')
    const other = [...desk.emulated.apps.keys()].find((id) => id !== APP)
    await desk.ask(`home/app/${other}/cmd/disable`, '[]')
    await desk.ask('home/cmd/install', '{}')
    expect(desk.audit.slice(120)).toMatchObject([{ command: 'disable' }, { command: 'install' }])
    expect(desk.failed).toHaveLength(122)
    void desk.dispatcher.stop()
    expect(desk.audit.at(-1)).toMatchObject({ refused: 90 })
  })

  test('as a number for a minute with a flood of refusals, and then for each refusal again', async ({ desk }) => {
    const refuse = () => desk.ask(app('restart'), '[]')
    for (let i = 0; i < 61; i += 1) await refuse()
    await desk.clock.advance(59_999)
    await refuse()
    expect(desk.audit).toHaveLength(60)
    await desk.clock.advance(1)
    expect(desk.audit.slice(60)).toMatchObject([{ level: 40, refused: 2 }])
    await refuse()
    expect(desk.audit.slice(61)).toMatchObject([{ command: 'restart', outcome: 'invalid_payload' }])
    for (let i = 1; i < 60; i += 1) await refuse()
    await desk.dispatcher.stop()
    expect(desk.audit).toHaveLength(121)
    expect(desk.clock.pending).toBe(0)
  })
})
