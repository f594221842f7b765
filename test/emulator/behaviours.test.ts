import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { acknowledged, ask, events, HUE, hubOf, PUMP, sessionOf, subscribed, test } from './support.ts'

const APPS = 'GET /apps/app'
const SET = `PUT /apps/app/${HUE}/setting/x`

describe('answers', () => {
  test.each([401, 403, 404, 429, 500, 503])('fail with %i as often as configured, then succeed', async (status) => {
    const hub = await hubOf()
    hub.behave('answer-status', { status, retryAfter: 3, times: 2 })
    const answer = await ask(hub, APPS)
    expect(answer).toMatchObject({ status, json: { error: expect.any(String) } })
    expect(answer.headers['retry-after']).toBe('3')
    expect((await ask(hub, APPS)).status).toBe(status)
    expect((await ask(hub, APPS)).status).toBe(200)
  })

  test('fail for the named operation and no other, without executing it', async ({ hub }) => {
    hub.behave('answer-status', { status: 500, operation: ['setAppSetting', 'getApp'] })
    hub.behave('answer-status', { status: 503, operation: 'getApps' })
    expect((await ask(hub, SET, { body: { value: 1 } })).status).toBe(500)
    expect((await ask(hub, APPS)).status).toBe(503)
    expect((await ask(hub, `GET /apps/app/${HUE}/setting`)).status).toBe(200)
    expect(hub.settings(HUE)).not.toHaveProperty('x')
    hub.behave('answer-status', false)
    expect((await ask(hub, APPS)).status).toBe(200)
  })

  test('have the wrong form: no JSON, incomplete JSON, another shape, an empty list', async ({ hub }) => {
    const answer = async () => {
      const given = await ask(hub, APPS)
      hub.behaveWell()
      return given
    }
    hub.behave('not-json')
    expect(await answer()).toMatchObject({ status: 200, text: 'This is not JSON' })
    hub.behave('truncated-json')
    expect(await answer()).toMatchObject({ status: 200, json: undefined, text: expect.stringMatching(/^\{"com/) })
    hub.behave('wrong-shape', { value: { apps: 'none' } })
    expect((await answer()).json).toEqual({ apps: 'none' })
    hub.behave('empty-list')
    expect((await ask(hub, `GET /apps/app/${HUE}`)).json).toMatchObject({ id: HUE })
    expect((await answer()).json).toEqual({})
  })

  test('claim a success that did not happen, with any status and value', async ({ hub }) => {
    hub.behave('pretend', { times: 1 })
    expect(await ask(hub, SET, { body: { value: 1 } })).toMatchObject({ status: 200, json: null })
    hub.behave('pretend', { status: 206, value: { part: true } })
    expect(await ask(hub, SET, { body: { value: 1 } })).toMatchObject({ status: 206, json: { part: true } })
    expect(hub.settings(HUE)).not.toHaveProperty('x')
  })

  test('are large, but valid', async ({ hub }) => {
    hub.behave('big-body', { megabytes: 3 })
    const { text, json } = await ask(hub, APPS)
    expect(text.length).toBeGreaterThan(3 * 1024 * 1024)
    expect(json).toHaveProperty('padding')
  })

  test('are late, although the request is executed immediately', async ({ hub }) => {
    hub.behave('slow-headers', { ms: 60 })
    let answered = false
    const asking = ask(hub, SET, { body: { value: 1 } }).then((answer) => {
      answered = true
      return answer
    })
    await until('the setting', () => hub.settings(HUE)['x'] === 1)
    expect(answered).toBe(false)
    expect((await asking).status).toBe(200)
  })

  test('arrive byte by byte', async ({ hub }) => {
    hub.behave('dripping-body', { ms: 1, bytes: 1000 })
    expect((await ask(hub, APPS)).json).toEqual(Object.fromEntries(hub.apps))
  })

  test('never arrive, and closing the hub does not wait for them', async ({ hub }) => {
    hub.behave('never-answer')
    const failed = expect(ask(hub, SET, { body: { value: 1 } })).rejects.toThrow()
    await until('the request', () => hub.requests.length === 1)
    expect(hub.requests[0]).not.toHaveProperty('status')
    await hub.close()
    await failed
    expect(hub.settings(HUE)).not.toHaveProperty('x')
  })

  test('are lost to a reset, before or after the request was executed', async ({ hub }) => {
    hub.behave('reset-before-executing', { times: 1 })
    await expect(ask(hub, SET, { body: { value: 1 } })).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(hub.settings(HUE)).not.toHaveProperty('x')
    hub.behave('execute-then-reset', { times: 1 })
    await expect(ask(hub, SET, { body: { value: 2 } })).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(hub.settings(HUE)['x']).toBe(2)
    expect((await ask(hub, SET, { body: { value: 3 } })).status).toBe(200)
  })

  test('are refused over the realtime channel too', async ({ hub }) => {
    const { api } = await sessionOf(hub)
    const getApps = () => acknowledged(api, 'api', { uri: 'homey:manager:apps', operation: 'getApps', args: {} })
    hub.behave('truncated-json')
    hub.behave('answer-status', { status: 503, operation: 'getApps', times: 1 })
    expect((await getApps())[0]).toMatchObject({ statusCode: 503, error: 'unavailable' })
    expect((await getApps())[0]).toBeNull()
  })
})

test('the options of a behaviour are part of its type', ({ hub }) => {
  // @ts-expect-error an answer is limited to operations, not events
  hub.behave('answer-status', { event: 'app.update' })
  // @ts-expect-error an event is limited to its name, not to operations
  hub.behave('lose-events', { operation: 'getApps' })
  // @ts-expect-error there is no such operation
  hub.behave('answer-status', { operation: 'getNothing' })
  // @ts-expect-error a hang has no number of times
  hub.behave('realtime-hung', { times: 1 })
  // @ts-expect-error there is no such behaviour
  hub.behave('answer-politely', false)
})

describe('realtime', () => {
  test('is refused at the handshake, the namespace or the subscription', async ({ hub }) => {
    hub.behave('refuse-handshake', { times: 1, status: 503 })
    await expect(sessionOf(hub)).rejects.toMatchObject({ statusCode: 503 })
    hub.behave('refuse-namespace', { times: 1 })
    await expect(sessionOf(hub)).rejects.toMatchObject({ data: { statusCode: 500 } })
    hub.behave('refuse-subscription', { times: 1 })
    await expect(subscribed(hub)).rejects.toMatchObject({ statusCode: 500 })
    await subscribed(hub)
  })

  test('is dropped immediately after the namespace was accepted', async ({ hub }) => {
    hub.behave('drop-realtime', { times: 1 })
    const session = await sessionOf(hub)
    await until('the drop', () => session.gone.length > 0)
    expect(session.gone).toEqual(['io server disconnect'])
    expect(session.root.connected).toBe(true)
    await subscribed(hub)
  })

  test('loses as many events as configured, of the configured kind', async ({ hub, session }) => {
    hub.behave('lose-events', { times: 1, event: 'app.delete' })
    hub.change(HUE, { version: '2' })
    hub.uninstall(HUE)
    hub.uninstall(PUMP)
    expect(await events(hub, session)).toMatchObject([
      ['app.update', { id: HUE }],
      ['app.delete', { id: PUMP }],
    ])
  })

  test.each([
    ['sends events twice', 'duplicate-events', { times: 1 }, '23', '223'],
    ['lets events overtake the previous ones, and loses none', 'reorder-events', {}, '12345', '21435'],
  ] as const)('%s', async (_, name, options, sent, seen) => {
    const hub = await hubOf()
    const session = await subscribed(hub)
    hub.behave(name, options)
    for (const version of sent) hub.change(HUE, { version })
    hub.behave(name, false)
    expect((await events(hub, session)).map(([, app]) => Object(app).version).join('')).toBe(seen)
  })

  test('becomes silent without closing the connection', async () => {
    const hub = await hubOf({ pingIntervalMs: 20 })
    const session = await subscribed(hub)
    hub.behave('realtime-silent')
    hub.change(HUE, { version: '2' })
    let pings = 0
    session.manager.on('ping', () => {
      pings += 1
    })
    await until('pings', () => pings > 2)
    expect(await events(hub, session)).toEqual([])
    hub.behave('realtime-silent', false)
    hub.change(HUE, { version: '3' })
    expect(await events(hub, session)).toMatchObject([['app.update', { version: '3' }]])
  })

  test('hangs without pings until the client gives up, while REST works', async () => {
    const hub = await hubOf({ pingIntervalMs: 200, pingTimeoutMs: 200 })
    const session = await subscribed(hub)
    hub.behave('realtime-hung')
    hub.change(HUE, { version: '2' })
    expect((await ask(hub, APPS)).status).toBe(200)
    await until('the client to give up', () => session.gone.length > 0)
    expect(session.gone).toEqual(['ping timeout'])
    expect(session.events).toEqual([])
  })

  test('delivers the delayed events after a hang', async ({ hub, session }) => {
    hub.behave('realtime-hung')
    hub.change(HUE, { version: '2' })
    expect((await ask(hub, APPS)).status).toBe(200)
    expect(session.events).toEqual([])
    hub.behave('realtime-hung', false)
    expect(await events(hub, session)).toMatchObject([['app.update', { version: '2' }]])
    expect((await acknowledged(session.api, 'unsubscribe', 'homey:manager:apps'))[0]).toBeNull()
  })
})
