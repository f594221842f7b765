/** Tests commands from each kind of sender: a client, another part of the process, the bridge itself, and a fleet. */
import { describe, expect } from 'vitest'
import type { Reply, Requester } from '../../src/bridge/requests.ts'
import { until } from '../support/until.ts'
import { APP, app, type Desk, openDesk, test } from './desk.ts'

const RESTART = { item: 'apps', method: 'POST', path: `/app/${APP}/restart` }

/** Sends a command like another part of the same process, such as the page. Resolves to the reply. */
function request(desk: Desk, topic: string, payload = '', isCurrent?: Requester['isCurrent']): Promise<Reply> {
  return new Promise((resolve) => {
    const message = { topic: `b/${topic}`, payload: Buffer.from(payload), retain: false, dup: true, qos: 1 } as const
    const unsent = { ...message, receivedAt: desk.clock.elapsed(), connection: -1 }
    desk.dispatcher.receive(unsent, { by: 'page', isCurrent, reply: resolve })
  })
}

describe('a command of another part of the process', () => {
  test('is answered to that part only, and the audit names it', async ({ desk }) => {
    const { outcome, payload } = await request(desk, app('get-setting/x'))
    expect(outcome).toEqual({ ok: true, json: '1' })
    expect(JSON.parse(payload)).toMatchObject({ ok: true, command: 'get-setting', hub: 'home', app: APP, data: 1 })
    await request(desk, app('restart'))
    await desk.ask(app('restart'))
    expect(desk.sent).toHaveLength(1)
    expect(desk.audit.map(({ by }) => by)).toEqual(['page', undefined])
    expect(desk.runs.map(({ by }) => by)).toEqual(['page', 'page', null, null])
  })

  test('does not end with a connection to the broker, but when it is aborted', async ({ desk }) => {
    desk.world.connection = 2
    expect(await request(desk, app('restart'))).toMatchObject({ outcome: { ok: true } })
    expect(await request(desk, app('restart'), '', () => false)).toMatchObject({
      outcome: { error: { code: 'expired' } },
    })
    expect(desk.writes()).toEqual(['restartApp'])
  })

  test('is executed each time: no broker redelivers it', async ({ desk }) => {
    for (let i = 0; i < 2; i += 1) await request(desk, app('restart'))
    expect(desk.writes()).toEqual(['restartApp', 'restartApp'])
  })

  test('may be an empty value under either protocol of the broker', async ({ desk }) => {
    desk.world.protocol = '3.1.1'
    expect(await request(desk, app('set-setting/x'))).toMatchObject({ outcome: { ok: true } })
    expect(desk.emulated.settings(APP)['x']).toBe('')
  })
})

describe('a command of the bridge itself', () => {
  test('reaches the app with its payload, and nothing is published', async ({ desk }) => {
    const own = { hub: 'home', app: APP, command: 'autoupdate', by: 'guardian' }
    expect(await desk.dispatcher.send({ ...own, command: 'update', payload: { autoupdate: false } })).toEqual({
      ok: true,
      json: 'null',
    })
    expect(desk.emulated.requests.at(-1)).toMatchObject({ operation: 'updateApp', body: { autoupdate: false } })
    expect(await desk.dispatcher.send({ ...own, app: 'gone', command: 'restart', payload: {} })).toMatchObject({
      error: { code: 'unknown_app' },
    })
    expect(desk.sent).toEqual([])
    expect(desk.audit).toMatchObject([
      { command: 'update', by: 'guardian', outcome: 'ok' },
      { command: 'restart', by: 'guardian', outcome: 'unknown_app' },
    ])
  })

  test('is refused if it was aborted before its turn comes', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'disableApp' })
    desk.hand(app('disable'))
    let isCurrent = true
    const own = { hub: 'home', app: APP, command: 'restart', payload: {}, by: 'guardian' }
    const sent = desk.dispatcher.send({ ...own, isCurrent: () => isCurrent })
    await until('the first', () => desk.writes().length === 1)
    isCurrent = false
    expect(await sent).toMatchObject({ ok: false, error: { code: 'expired' } })
    expect(desk.writes()).toEqual(['disableApp'])
  })
})

describe('in a fleet', () => {
  const whyNotServed = (hub: string) => (hub === 'attic' ? 'Member b serves it.' : undefined)
  const inFleet = (isLeader: boolean) => openDesk({ fleet: { isLeader, whyNotServed } })
  const answered = async (desk: Desk) => {
    for (const hub of ['attic', 'nowhere', 'home']) desk.hand(`${hub}/app/${APP}/cmd/get-setting/x`)
    desk.hand('bridge/cmd/ping')
    desk.hand(app('restart'))
    await until('the last', () => desk.sent.some(({ answer }) => answer['command'] === 'restart'))
    return desk.sent.map(({ topic }) => topic.split('/result/')[0]).sort()
  }

  test('a member answers for its own hubs only', async () => {
    expect(await answered(await inFleet(false))).toEqual([`b/home/app/${APP}`, `b/home/app/${APP}`])
  })

  test('the leader answers also for the bridge and for hubs that are not configured', async () => {
    const own = `b/home/app/${APP}`
    expect(await answered(await inFleet(true))).toEqual(['b/bridge', own, own, `b/nowhere/app/${APP}`])
  })

  test('a part of the process always gets an answer, which names the member that serves the hub', async () => {
    const desk = await inFleet(false)
    const message = async (hub: string) => {
      const { outcome } = await request(desk, `${hub}/app/${APP}/cmd/restart`)
      return outcome.ok ? undefined : `${outcome.error.code} ${outcome.error.message}`
    }
    expect(await message('attic')).toBe('unknown_hub Member b serves it.')
    expect(await message('nowhere')).toBe('unknown_hub No hub of that name is configured.')
    expect(await request(desk, 'bridge/cmd/ping')).toMatchObject({ outcome: { ok: true } })
  })
})

describe('a command that sends other commands', () => {
  const APPS = [
    { id: 'a', update: '2.0.0' },
    { id: 'b', update: '2.0.0' },
  ]
  const UPDATE_ALL = 'home/cmd/update-all'
  const begun = async (payload = '') => {
    const desk = await openDesk({ hub: { apps: APPS }, concurrency: 1 })
    desk.emulated.behave('slow-headers', { ms: 150, operation: 'installFromAppStore', times: 1 })
    desk.hand(UPDATE_ALL, payload)
    await until('the first', () => desk.writes().length === 1)
    return desk
  }

  test('is refused while it runs, sends them one at a time, and each of them is audited', async () => {
    const desk = await begun()
    expect(await desk.ask(UPDATE_ALL, '{"transaction":"second"}')).toMatchObject({
      transaction: 'second',
      error: { code: 'busy' },
    })
    await until('the end', () => desk.sent.length === 2)
    expect(desk.sent[1]?.answer).toMatchObject({ ok: true, data: { updated: ['a', 'b'] } })
    const own = desk.audit.filter(({ by }) => by === 'update-all')
    expect(own.map(({ command, app, outcome }) => `${command} ${app} ${outcome}`)).toEqual([
      'install a ok',
      'install b ok',
    ])
  })

  test.each([
    ['its connection is lost', '', ({ world }: Desk) => (world.connection = 2)],
    [
      'its time is over',
      JSON.stringify({ expires_at: Date.parse('2026-01-01T00:01:00Z') }),
      ({ clock }: Desk) => clock.advance(60_000),
    ],
  ])('sends no more of them when %s', async (_, payload, lose) => {
    const desk = await begun(payload)
    await lose(desk)
    await until('the end', () => desk.sent.length === 1)
    expect(desk.sent[0]?.answer).toMatchObject({ error: { code: 'expired' }, data: { done: ['a'] } })
    expect(desk.writes()).toEqual(['installFromAppStore'])
  })
})

describe('other parts are notified of', () => {
  test('the setting that a command changes, its app, and whether the command succeeded', async ({ desk }) => {
    desk.emulated.behave('answer-status', { status: 503, operation: 'enableApp' })
    for (const [topic, payload] of [
      [app('set-setting/x'), '1'],
      [app('set-setting'), '{"name":"y","value":1}'],
      [app('unset-setting/x'), ''],
      [app('unset-setting'), '{"name":"y"}'],
      [app('update'), '{"autoupdate":false}'],
      [app('enable'), ''],
      ['home/cmd/install', '{"id":"com.new"}'],
      ['home/cmd/speak', 'Hello'],
      ['home/cmd/call', JSON.stringify(RESTART)],
    ] as const)
      await desk.ask(topic, payload)
    const ends = desk.runs.filter(({ phase }) => phase === 'ended')
    expect(ends.map((run) => [run.command.name, run.app, run.about, run.setting, run.ok])).toEqual([
      ['set-setting', APP, APP, 'x', true],
      ['set-setting', APP, APP, 'y', true],
      ['unset-setting', APP, APP, 'x', true],
      ['unset-setting', APP, APP, 'y', true],
      ['update', APP, APP, null, true],
      ['enable', APP, APP, null, false],
      ['install', null, 'com.new', null, expect.any(Boolean)],
      ['speak', null, null, null, true],
      ['call', APP, APP, null, true],
    ])
    const starts = desk.runs.filter(({ phase }) => phase === 'begun')
    expect(starts.map(({ command, ok }) => [command.name, ok])).toEqual(
      ends.map(({ command }) => [command.name, false]),
    )
  })

  test('commands for the guardian, and a request to restore everything on the broker', async ({ desk }) => {
    await desk.ask(app('guard'), '{"snooze":"1h"}')
    await desk.ask('home/cmd/refresh')
    expect(desk.calls).toEqual([[APP, { snooze: 3_600_000 }], 'repair'])
  })

  test('a command that they can answer from their data about an app', async ({ desk }) => {
    expect(await desk.ask(app('get-crash'))).toMatchObject({ ok: true, data: { markdown: null } })
    expect(await desk.ask(app('get-history'))).toMatchObject({ ok: true, data: { source: 'bridge' } })
  })
})

describe('a generic call', () => {
  const call = (desk: Desk, payload: object) => desk.ask('home/cmd/call', JSON.stringify(payload))

  test('waits behind the commands of its app, and behind no others', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 150, operation: 'disableApp' })
    desk.hand(app('disable'))
    await until('the first', () => desk.writes().length === 1)
    desk.hand('home/cmd/call', JSON.stringify(RESTART))
    desk.hand('home/cmd/call', JSON.stringify({ ...RESTART, path: '/app/another.app/disable', method: 'PUT' }))
    desk.hand(
      'home/cmd/call',
      JSON.stringify({ item: 'speech-output', method: 'POST', path: '/say', body: { text: 'x' } }),
    )
    await until('all', () => desk.sent.length === 4)
    expect(desk.writes()[0]).toBe('disableApp')
    expect(desk.writes().at(-1)).toBe('restartApp')
    expect(desk.writes().slice(1, 3).sort()).toEqual(['disableApp', 'say'])
  })

  test('reaches an app that is not installed only to install it', async ({ desk }) => {
    expect(await call(desk, { ...RESTART, path: '/app/gone/restart' })).toMatchObject({
      error: { code: 'unknown_app' },
    })
    expect(desk.writes()).toEqual([])
    await call(desk, { item: 'apps', method: 'POST', path: '/store', body: { id: 'com.new' } })
    expect(desk.writes()).toEqual(['installFromAppStore'])
  })

  test('that is invalid is refused as a write, because it may be one', async ({ desk }) => {
    expect(await call(desk, { item: 'apps', path: 'no slash' })).toMatchObject({ error: { code: 'invalid_payload' } })
    expect(desk.audit).toMatchObject([{ command: 'call', outcome: 'invalid_payload' }])
    expect(desk.failed).toMatchObject([{ command: 'call', code: 'invalid_payload' }])
  })
})

describe('at the end of the bridge', () => {
  test('nothing is waited for if no command runs, and new commands are refused', async ({ desk }) => {
    await desk.ask(app('restart'))
    expect(desk.dispatcher.isBusy).toBe(false)
    await desk.dispatcher.stop()
    expect(desk.clock.pending).toBe(0)
    expect(await desk.ask(app('restart'))).toMatchObject({ error: { code: 'expired' } })
    expect(desk.writes()).toEqual(['restartApp'])
  })

  test('running commands finish and are answered, and waiting ones are refused', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 150, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('restart'))
    await until('the first', () => desk.writes().length === 1)
    expect(desk.dispatcher.isBusy).toBe(true)
    await desk.dispatcher.stop()
    expect(desk.sent.map(({ answer }) => [answer['command'], answer['ok'], Object(answer['error']).code])).toEqual([
      ['disable', true, undefined],
      ['restart', false, 'expired'],
    ])
    expect(desk.dispatcher.isBusy).toBe(false)
  })

  test('a command that runs longer than a second and a half is aborted and answered', async ({ desk }) => {
    desk.emulated.behave('never-answer', { operation: 'restartApp' })
    desk.hand(app('restart'))
    await until('the request', () => desk.writes().length === 1)
    const stopping = desk.dispatcher.stop()
    await desk.clock.advance(1499)
    expect(desk.dispatcher.isBusy).toBe(true)
    await desk.clock.advance(1)
    await stopping
    expect(desk.sent).toMatchObject([{ answer: { command: 'restart', error: { code: 'outcome_unknown' } } }])
  })

  test('a command that does not end when it is aborted is waited for until 1.8 seconds have passed', async () => {
    const desk = await openDesk({ rollOut: () => new Promise(() => {}) })
    desk.hand('bridge/cmd/rollout', `{"transaction":"t","command":"restart","app":"${APP}"}`)
    let isOver = false
    const stopping = desk.dispatcher.stop().then(() => (isOver = true))
    await desk.clock.advance(1500)
    await desk.clock.advance(299)
    expect(isOver).toBe(false)
    await desk.clock.advance(1)
    await stopping
    expect(desk.sent).toEqual([])
  })
})

test('the answer to a mistyped command suggests the probable one, if its target has one', async ({ desk }) => {
  const message = async (topic: string) => Object((await desk.ask(topic))['error']).message
  expect(await message(app('restrat'))).toBe('There is no such command; did you mean restart?')
  expect(await message('bridge/cmd/restrat')).toBe('There is no such command.')
  expect(await message(app('dance'))).toBe('There is no such command.')
})

test('a topic level that is not an app id names no app', async ({ desk }) => {
  expect(await desk.ask('home/app/%/cmd/restart')).toMatchObject({ error: { code: 'unknown_app' } })
})

test.each([
  ['in its payload', { expires_at: Date.parse('2026-01-01T00:01:00Z') }, {}],
  ['of its message', {}, { expiresInMs: 60_000 }],
])('no part of a command begins after the time that its sender set %s', async (_, envelope, more) => {
  const desk = await openDesk()
  desk.emulated.behave('slow-headers', { ms: 100, operation: 'updateApp' })
  desk.hand(app('update'), JSON.stringify({ autoupdate: false, channel: 'beta', ...envelope }), more)
  await until('the first part', () => desk.operations().includes('updateApp'))
  await desk.clock.advance(60_000)
  await until('the answer', () => desk.sent.length === 1)
  expect(desk.sent[0]?.answer).toMatchObject({ error: { code: 'expired' }, data: { done: ['autoupdate'] } })
  expect(desk.writes()).toEqual(['updateApp'])
})
