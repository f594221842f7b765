/** Tests the behaviours that simulate a server in front of a hub, or a hub whose answers do not match its state. */
import { describe, expect } from 'vitest'
import { acknowledged, ask, connected, HUE, hubOf, opened, test } from './support.ts'

const APPS = 'GET /apps/app'
const APP = `GET /apps/app/${HUE}`
const SET = `PUT /apps/app/${HUE}/setting/x`

describe('another server at the address', () => {
  test.each([200, 404, 502])(
    'answers with a page and status %i, without identity, and nothing is executed',
    async (status) => {
      const hub = await hubOf()
      hub.behave('gateway-page', { status })
      const answer = await ask(hub, SET, { body: { value: 1 } })
      expect(answer).toMatchObject({ status, headers: { 'content-type': 'text/html' } })
      expect(answer.text).toMatch(/^<!doctype html>/)
      expect(answer.headers).not.toHaveProperty('x-homey-id')
      expect(hub.settings(HUE)).not.toHaveProperty('x')
    },
  )

  test('answers with its own JSON, or redirects the client', async ({ hub }) => {
    hub.behave('portal-json', { times: 1 })
    const portal = await ask(hub, APPS)
    expect(portal).toMatchObject({ status: 200, json: { error: 'starting up' } })
    expect(portal.headers).not.toHaveProperty('x-homey-id')
    hub.behave('redirect', { location: 'http://192.0.2.1/', status: 307, times: 1 })
    expect(await ask(hub, APPS)).toMatchObject({ status: 307, headers: { location: 'http://192.0.2.1/' } })
    expect((await ask(hub, APPS)).headers).toMatchObject({ 'x-homey-id': hub.id })
  })
})

test.each([true, false])('a gateway answers a write that the hub executed: %s', async (executes) => {
  const hub = await hubOf()
  hub.behave('gateway-answer', { executes, status: 201, text: '<p>', type: 'text/html' })
  const answer = await ask(hub, SET, { body: { value: 1 } })
  expect(answer).toMatchObject({ status: 201, text: '<p>', headers: { 'content-type': 'text/html' } })
  expect(answer.headers).not.toHaveProperty('x-homey-id')
  expect(hub.settings(HUE)['x']).toBe(executes ? 1 : undefined)
  expect(hub.requests.at(-1)?.executed).toBe(executes)
})

test('the identity of the hub is missing or wrong for as many answers as configured, in addition to other faults', async ({
  hub,
}) => {
  hub.behave('no-identity', { times: 1, operation: 'ping' })
  hub.behave('answer-status', { status: 503, times: 1 })
  const first = await ask(hub, 'GET /system/ping')
  expect(first.status).toBe(503)
  expect(first.headers).not.toHaveProperty('x-homey-id')
  hub.behave('other-identity', { id: 'b', version: '9.9.9', times: 1 })
  expect((await ask(hub, APPS)).headers).toMatchObject({ 'x-homey-id': 'b', 'x-homey-version': '9.9.9' })
  expect((await ask(hub, APPS)).headers).toMatchObject({ 'x-homey-id': hub.id })
})

describe('a list or record', () => {
  test('has only some of its entries', async ({ hub }) => {
    hub.behave('half-list', { keep: 0.3 })
    const { json } = await ask(hub, APPS)
    expect(Object.keys(Object(json))).toEqual([...hub.apps.keys()].slice(0, Math.ceil(hub.apps.size * 0.3)))
  })

  test('has another id', async ({ hub }) => {
    hub.behave('foreign-ids', { suffix: '!' })
    expect((await ask(hub, APPS)).json).toMatchObject({ [HUE]: { id: `${HUE}!` } })
    expect((await ask(hub, APP)).json).toMatchObject({ id: `${HUE}!`, enabled: true })
  })

  test('is nested deeper than any client expects', async ({ hub }) => {
    hub.behave('deep-json', { levels: 3 })
    expect((await ask(hub, `GET /apps/app/${HUE}/setting`)).text).toMatch(/^\{("[^"]+":\[\[\[\]\]\],?)+\}$/)
    expect((await ask(hub, 'GET /system/ping')).text).toBe('[[[]]]')
  })

  test('stays as it was at the first read, while writes are executed', async ({ hub }) => {
    hub.behave('stale-reads')
    const before = (await ask(hub, `GET /apps/app/${HUE}/setting`)).json
    expect((await ask(hub, SET, { body: { value: 1 } })).status).toBe(200)
    expect(hub.settings(HUE)['x']).toBe(1)
    expect((await ask(hub, `GET /apps/app/${HUE}/setting`)).json).toEqual(before)
    hub.behaveWell()
    expect((await ask(hub, `GET /apps/app/${HUE}/setting`)).json).toMatchObject({ x: 1 })
  })
})

describe('requests', () => {
  test('above a limit in a period are refused and not executed', async ({ hub }) => {
    hub.behave('rate-limit', { requests: 2, windowMs: 60_000, retryAfter: 2 })
    expect((await ask(hub, APPS)).status).toBe(200)
    expect((await ask(hub, APPS)).status).toBe(200)
    const refused = await ask(hub, SET, { body: { value: 1 } })
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '2' } })
    expect(hub.settings(HUE)).not.toHaveProperty('x')
  })

  test('for a method that the hub lacks fail as on older hubs', async () => {
    const hub = await hubOf({ flavour: 'older' })
    hub.behave('missing-api-method', { operation: 'garbageCollectApp' })
    const answer = await ask(hub, `POST /apps/app/${HUE}/gc`)
    expect(answer).toMatchObject({ status: 500, json: { error: 'missing_api_method' } })
  })
})

test('the namespace requires the token from the handshake', async ({ hub }) => {
  hub.behave('namespace-token')
  const open = async (send: boolean) => {
    const { manager, root } = connected(hub)
    const [, welcome] = await acknowledged(root, 'handshakeClient', { token: 'secret', homeyId: 'any' })
    const { token } = Object(welcome)
    return await opened(manager.socket('/api', send ? { auth: { token } } : {}))
  }
  expect(await open(true)).toBe('open')
  expect(await open(false)).toMatchObject({ data: { statusCode: 401 } })
})
