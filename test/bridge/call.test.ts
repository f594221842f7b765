import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { APP, type Desk, openDesk, test } from './desk.ts'

const TOPIC = 'home/cmd/call'
const call = (desk: Desk, payload: object) => desk.ask(TOPIC, JSON.stringify(payload))
const RESTART = { item: 'apps', method: 'POST', path: `/app/${APP}/restart` }

describe.concurrent('a call', () => {
  test('is answered with the answer of the hub', async ({ desk }) => {
    expect(await call(desk, { item: 'apps', path: `/app/${APP}/setting/x`, transaction: 't' })).toMatchObject({
      ok: true,
      command: 'call',
      hub: 'home',
      app: null,
      transaction: 't',
      data: 1,
    })
    expect(
      await call(desk, { item: 'speech-output', method: 'POST', path: '/say', body: { text: 'Hi' } }),
    ).toMatchObject({ ok: true, data: null })
    expect(desk.emulated.spoken).toEqual(['Hi'])
  })
})

describe.concurrent('a call reaches no further than other commands', () => {
  test('an operation of a denied command is not sent, in whatever spelling', async ({ desk }) => {
    desk.world.policy = { ...desk.world.policy, deny: ['restart'] }
    for (const path of [RESTART.path, `/APP/${APP}/rest%61rt`])
      expect(await call(desk, { ...RESTART, path })).toMatchObject({ ok: false, error: { code: 'not_allowed' } })
    expect(desk.writes()).toEqual([])
  })

  test('a call that the key does not permit is not sent, and the missing permission is named', async ({
    emulate,
    hold,
  }) => {
    const desk = await openDesk({ hub: { keys: { key: ['hub.app.readonly'] } } }, { emulate, hold })
    const error = { code: 'forbidden', message: 'The API key lacks hub.app.' }
    expect(await call(desk, RESTART)).toMatchObject({ error })
    expect(desk.writes()).toEqual([])
  })

  test('apps that configuration hides are neither listed nor reached, and not on MQTT at all', async () => {
    await using world = await World.start({
      env: { COMMANDS_ALLOW: '*', APPS_EXCLUDE: 'the.hidden' },
      hub: { apps: [{ id: 'the.app' }, { id: 'the.hidden' }] },
    })
    const ask = (payload: object) => world.request(TOPIC, JSON.stringify(payload))
    expect(Object.keys((await ask({ item: 'apps', path: '/app' })).data ?? {})).toEqual(['the.app'])
    expect(Object.keys((await ask({ item: 'apps', path: '/APP' })).data ?? {})).toEqual(['the.app'])
    for (const payload of [
      { item: 'apps', path: '/app/the.hidden' },
      { item: 'apps', path: '/app/the.hidden/no-such' },
      { item: 'apps', method: 'POST', path: '/app/the.hidden/restart' },
      { item: 'apps', method: 'POST', path: '/store', body: { id: 'the.hidden' } },
      { section: 'app', item: 'the.hidden', path: '/' },
    ]) {
      expect((await ask(payload)).error?.code, JSON.stringify(payload)).toBe('unknown_app')
    }
    world.hub.crash('the.hidden')
    expect((await world.request('home/app/the.hidden/cmd/get')).error?.code).toBe('unknown_app')
    for (const payload of ['', '{"filter":{"id":"the.hidden"}}'])
      expect((await world.request('home/cmd/get-apps', payload)).data).not.toHaveProperty(['the.hidden'])
    const isPublished = ({ topic }: { topic: string }) => /the\.hidden(?!\/(cmd|result)\/)/.test(topic)
    expect(world.observer.seen.filter(isPublished)).toEqual([])
    const paths = world.hub.requests.map(({ path }) => path)
    expect(paths.filter((path) => path.includes('the.hidden') || path.includes('store'))).toEqual([])
  })
})

describe.concurrent('a call that changes something', () => {
  test('is audited with its target, without query and body, and its failure is an event', async ({ desk }) => {
    await call(desk, { ...RESTART, query: { q: 'secret' }, body: { b: 'secret' }, transaction: 7 })
    await call(desk, { item: 'flow', method: 'POST', path: '/x', body: 'secret' })
    expect(desk.audit).toMatchObject([
      {
        command: 'call',
        hub: 'home',
        app: null,
        transaction: 7,
        outcome: 'ok',
        endpoint: `POST manager/apps/app/${APP}/restart`,
      },
      { command: 'call', outcome: 'unsupported', endpoint: 'POST manager/flow/x' },
    ])
    expect(JSON.stringify(desk.audit)).not.toContain('secret')
    expect(desk.failed).toMatchObject([{ app: null, command: 'call', code: 'unsupported' }])
  })

  test('is reported each time that it was sent to the hub, however many calls fail', async ({ desk }) => {
    for (let i = 0; i < 61; i++) await call(desk, { item: 'flow', method: 'POST', path: '/x' })
    expect(desk.audit).toHaveLength(61)
  })

  test('is reported like the command that has the same effect', async ({ desk }) => {
    await call(desk, RESTART)
    await call(desk, { item: 'apps', path: `/app/${APP}` })
    const told = desk.runs.filter(({ phase }) => phase === 'begun')
    expect(told).toMatchObject([
      { app: APP, about: APP, command: { name: 'call', operation: 'restartApp', write: true } },
      { app: APP, about: APP, command: { name: 'call', operation: 'getApp', write: false } },
    ])
  })
})

test.concurrent('a call that only reads is not audited, and its failure causes no event', async ({ desk }) => {
  await call(desk, { item: 'apps', path: '/app', transaction: 't' })
  await call(desk, { item: 'apps', path: '/app', transaction: 't' })
  await call(desk, { item: 'flow' })
  expect(desk.audit).toEqual([])
  expect(desk.failed).toEqual([])
})

test.concurrent('a token of the API in an answer is not passed on, nor one that a reload adds; a password is never audited', async () => {
  const first = 'token-of-a-script-1'
  const second = 'token-of-a-script-2'
  const password = 'password-of-the-page'
  const file = (token: string) => `http:\n  enabled: false\n  tokens: {script: {token: ${token}, access: read}}\n`
  await using world = await World.start({ file: file(first), env: { HTTP_PASSWORD: password } })
  const { app, hub, observer } = world
  const crash = (message: string) => {
    hub.crash(app, message)
    return until('the crash', () => world.state(app)?.['crash_message'] !== null)
  }
  await crash(`Error: ${first}, ${password}`)
  expect(world.state(app)).toMatchObject({ crash_message: `Error: ***, ${password}` })
  hub.behave('answer-status', { operation: 'restartApp', times: 1, status: 500, description: `no ${first}` })
  const refused = await world.request(`home/app/${app}/cmd/restart`)
  expect(refused.error?.message).toBe('The hub failed: 500, no ***.')
  world.bridge.reload(file(second))
  expect((await world.request(`home/app/${app}/cmd/restart`)).ok).toBe(true)
  await until('the start', () => world.state(app)?.['crash_message'] === null)
  await crash(`Error: ${first}, ${second}`)
  expect(world.state(app)).toMatchObject({ crash_message: 'Error: ***, ***' })
  expect(observer.seen.filter(({ text }) => text.includes(first) || text.includes(second))).toEqual([])
  const log = world.bridge.lines.join('')
  for (const secret of [first, second, password]) expect(log).not.toContain(secret)
  expect(log).toContain('Error: ***, ***')
})
