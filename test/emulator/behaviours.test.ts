import { describe, expect } from 'vitest'
import { until } from '../support/until.ts'
import { acknowledged, ask, events, HUE, hubOf, PUMP, sessionOf, subscribed, test } from './support.ts'

const APPS = 'GET /apps/app'
const SETTINGS = `GET /apps/app/${HUE}/setting`
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
    expect((await ask(hub, SETTINGS)).status).toBe(200)
    expect(hub.settings(HUE)).not.toHaveProperty('x')
    hub.behave('answer-status', false)
    expect((await ask(hub, APPS)).status).toBe(200)
  })

  test('stay as they were at the first read, while writes are executed', async ({ hub }) => {
    hub.behave('stale-reads')
    const before = (await ask(hub, SETTINGS)).json
    expect((await ask(hub, SET, { body: { value: 1 } })).status).toBe(200)
    expect(hub.settings(HUE)['x']).toBe(1)
    expect((await ask(hub, SETTINGS)).json).toEqual(before)
    hub.behaveWell()
    expect((await ask(hub, SETTINGS)).json).toMatchObject({ x: 1 })
  })

  test('come from another server, without the identity of the hub, and may redirect the client', async ({ hub }) => {
    hub.behave('portal-json', { times: 1 })
    const portal = await ask(hub, APPS)
    expect(portal).toMatchObject({ status: 200, json: { error: 'starting up' } })
    expect(portal.headers).not.toHaveProperty('x-homey-id')
    hub.behave('redirect', { location: 'http://192.0.2.1/', status: 307, times: 1 })
    expect(await ask(hub, APPS)).toMatchObject({ status: 307, headers: { location: 'http://192.0.2.1/' } })
    expect((await ask(hub, APPS)).headers).toMatchObject({ 'x-homey-id': hub.id })
  })

  test('are incomplete: the JSON, or the list of apps', async ({ hub }) => {
    const answer = async (...behaviour: Parameters<typeof hub.behave>) => {
      hub.behave(...behaviour)
      const given = await ask(hub, APPS)
      hub.behaveWell()
      return given
    }
    expect(await answer('truncated-json')).toMatchObject({ json: undefined, text: expect.stringMatching(/^\{"com/) })
    expect((await answer('empty-list')).json).toEqual({})
    const some = [...hub.apps.keys()].slice(0, Math.ceil(hub.apps.size * 0.3))
    expect(Object.keys(Object((await answer('half-list', { keep: 0.3 })).json))).toEqual(some)
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
  // @ts-expect-error `answer-status` can be restricted to an operation, not to an event
  hub.behave('answer-status', { event: 'app.update' })
  // @ts-expect-error `lose-events` can be restricted to an event, not to an operation
  hub.behave('lose-events', { operation: 'getApps' })
  // @ts-expect-error there is no such operation
  hub.behave('answer-status', { operation: 'getNothing' })
  // @ts-expect-error `realtime-hung` cannot be restricted to a number of times
  hub.behave('realtime-hung', { times: 1 })
  // @ts-expect-error there is no such behaviour
  hub.behave('answer-politely', false)
})

describe('realtime', () => {
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
