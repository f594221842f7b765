import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { USAGE_HISTORY } from '../../../src/contract/crash.ts'
import { DOCTOR_REPORT, type LiveFrame, STATE } from '../../../src/web/server/api/protocol.ts'
import { until } from '../../support/until.ts'
import type { World } from '../../support/world.ts'
import { KEY, World as Worlds } from '../../support/world.ts'
import { addressOf, framesOf, snapshotOf } from './frames.ts'

const http = { HTTP_ENABLED: 'true', HTTP_PORT: '0' }

let world: World
let url: string
let app: string
let owner: { readonly authorization: string }

const send = async (path: string, body?: string) => {
  const headers = { ...owner, ...(body !== undefined && { 'content-type': 'application/json' }) }
  const response = await fetch(`${url}/api/commands/${path}`, { method: 'POST', headers, ...(body && { body }) })
  return { status: response.status, answer: await response.json() }
}
const stateOf = async (at = url) => v.parse(STATE, await (await fetch(`${at}/api/state`)).json())

beforeAll(async () => {
  world = await Worlds.start({ env: { ...http, COMMANDS_DENY: 'garbage-collect' } })
  url = await addressOf(world.bridge)
  app = world.app
  owner = await world.bridge.owner()
})
afterAll(() => world[Symbol.asyncDispose]())

describe('over HTTP', () => {
  it('the retained topics equal those on the broker', async () => {
    await world.settle()
    const state = await stateOf()
    const { observer } = world
    const topics = Object.keys(state)
    expect(topics).toContain('hub2mqtt/bridge/state')
    expect(topics).toContain(`hub2mqtt/home/app/${world.app}`)
    for (const topic of topics.filter((one) => !one.endsWith('/health')))
      expect(state[topic], topic).toBe(observer.last(topic))
    const retained = [...new Set(observer.seen.map(({ topic }) => topic))]
      .filter((topic) => topic.startsWith('hub2mqtt/') && !/\/(event|cmd|result|presence|probe)(\/|$)/.test(topic))
      .filter((topic) => observer.last(topic) !== '')
    expect(topics.toSorted()).toEqual(retained.toSorted())
  })

  it('a command is executed and answered as over MQTT, and no client on MQTT gets the answer', async () => {
    const { observer } = world
    const { status, answer } = await send(`home/app/${app}/restart`)
    expect(status).toBe(200)
    expect(answer).toMatchObject({ ok: true, command: 'restart', hub: 'home', app, data: null })
    expect(world.hub.requests.filter(({ operation }) => operation === 'restartApp')).toHaveLength(1)
    await world.settle()
    expect(observer.texts(`hub2mqtt/home/app/${app}/result/restart`)).toEqual([])
    const audits = world.bridge.lines.map((line) => JSON.parse(line)).filter(({ command }) => command === 'restart')
    expect(audits).toMatchObject([{ part: 'audit', outcome: 'ok', by: 'http' }])
  })

  it('an API key is removed from an answer', async () => {
    await send(`home/app/${app}/set-setting/remembered`, JSON.stringify(`is ${KEY}`))
    expect((await send(`home/app/${app}/get-setting/remembered`)).answer).toMatchObject({ ok: true, data: 'is ***' })
  })

  it.each([
    ['home/app/none/restart', undefined, 404, 'unknown_app'],
    ['nowhere/refresh', undefined, 404, 'unknown_hub'],
    ['home/restrat', undefined, 404, 'unknown_command'],
    ['bridge/log-level', '"loud"', 400, 'invalid_payload'],
    ['home/install', '{"id":"a.b"}', 403, 'not_allowed'],
    ['home/refresh', '{"expires_at":1}', 408, 'expired'],
    ['home/call', '{"item":"system","path":"/ping"}', 403, 'not_allowed'],
  ])('%s is refused with the code of the contract, and its status', async (path, body, status, code) => {
    expect(await send(path, body)).toMatchObject({ status, answer: { ok: false, error: { code } } })
  })

  it('commands that the configuration denies are refused, and the live channel lists them beforehand', async () => {
    expect(await send(`home/app/${app}/garbage-collect`)).toMatchObject({
      status: 403,
      answer: { error: { code: 'not_allowed', message: 'commands.deny names garbage-collect.' } },
    })
    const snapshot = await snapshotOf(url)
    expect(snapshot.refusals['home']).toMatchObject({ 'garbage-collect': 'commands.deny names garbage-collect.' })
    expect(snapshot.refusals['home']).not.toHaveProperty('restart')
  })

  it('a transaction is executed once, over HTTP or MQTT', async () => {
    const count = () => world.hub.requests.filter(({ operation }) => operation === 'restartApp').length
    const before = count()
    const payload = '{"transaction":"once"}'
    await world.request(`home/app/${app}/cmd/restart`, payload)
    expect((await send(`home/app/${app}/restart`, payload)).answer).toMatchObject({ ok: true, replayed: true })
    expect(count()).toBe(before + 1)
  })

  it.each([
    ['that ends in time', 500, { ok: true }],
    ['that is cut off', 60_000, { ok: false, error: { code: 'outcome_unknown' } }],
  ])('a command in progress is answered at the end %s', async (_, ms, expected) => {
    await using ending = await Worlds.start({ env: http })
    const api = await addressOf(ending.bridge)
    const headers = await ending.bridge.owner()
    ending.hub.behave('slow-headers', { ms, times: 1, operation: 'restartApp' })
    const asked = fetch(`${api}/api/commands/home/app/${ending.app}/restart`, { method: 'POST', headers })
    await until('the request', () => ending.hub.requests.some(({ operation }) => operation === 'restartApp'))
    await ending.bridge.stop()
    expect(await (await asked).json()).toMatchObject(expected)
  })

  it('a command continues when its client has disconnected', async () => {
    const count = () =>
      world.hub.requests.filter(({ operation }) => operation === 'disableApp' || operation === 'updateApp')
    const before = world.state(app)?.['enabled']
    const leaving = new AbortController()
    const { signal } = leaving
    const asked = fetch(`${url}/api/commands/home/app/${app}/disable`, { method: 'POST', headers: owner, signal })
    asked.catch(() => undefined)
    await until(
      'the command to be told',
      () => world.bridge.lines.some((line) => line.includes('"command":"disable"')) || count().length > 0,
    )
    leaving.abort()
    await until('the app to be disabled', () => world.state(app)?.['enabled'] === false)
    expect(before).toBe(true)
    await send(`home/app/${app}/enable`)
    await until('the app to run', () => world.state(app)?.['state'] === 'running')
  })

  it('the live channel sends answers, without the input of their commands', async () => {
    const result = `hub2mqtt/home/app/${app}/result/get-settings`
    const eventsIn = (frame: LiveFrame) =>
      frame.type === 'snapshot' ? frame.recent : frame.type === 'changes' ? frame.happenings : []
    const toldIn = (all: readonly LiveFrame[]) => all.flatMap(eventsIn).find(({ topic }) => topic === result)
    const frames = framesOf(url, (all) => toldIn(all) !== undefined)
    expect((await world.request(`home/app/${app}/cmd/get-settings`)).data).not.toBeNull()
    const answer = toldIn(await frames)
    expect(JSON.parse(answer?.payload ?? '')).toMatchObject({ ok: true, command: 'get-settings', app, data: null })
  })

  it('an app has the icon that the hub has, or 404 without one', async () => {
    const response = await fetch(`${url}/api/hubs/home/apps/${app}/icon`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('image/svg+xml')
    expect(response.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(await response.text()).toMatch(/^<svg/)
    for (const path of ['home/apps/none', 'nowhere/apps/x']) {
      expect((await fetch(`${url}/api/hubs/${path}/icon`)).status).toBe(404)
    }
  })

  it('the usage of an app equals that of the command get-history', async () => {
    const usage = async (hours: string) => await fetch(`${url}/api/hubs/home/apps/${app}/history/${hours}`)
    const history = v.parse(USAGE_HISTORY, await (await usage('6')).json())
    expect(history).toMatchObject({ resolution_seconds: 60, source: 'bridge' })
    expect(history.memory_bytes.length).toBeGreaterThan(0)
    for (const hub of ['home', 'nowhere']) {
      const unknown = await fetch(`${url}/api/hubs/${hub}/apps/none/history/24`)
      expect(await unknown.json()).toMatchObject({ resolution_seconds: 600, cpu_percent: [], memory_bytes: [] })
    }
    for (const hours of ['0', '169', '1.5', 'x', '%20']) expect((await usage(hours)).status, hours).toBe(400)
  })

  it("the doctor's report is created once for all simultaneous requests", async () => {
    const reports = await Promise.all(
      [1, 2].map(async () =>
        v.parse(DOCTOR_REPORT, await (await fetch(`${url}/api/doctor`, { headers: owner })).json()),
      ),
    )
    expect(reports[0]?.text).toContain('hub home')
    expect(reports[0]?.text).toContain('For a bug report:')
    expect(reports[0]).toEqual(reports[1])
  })
})

it('with http.page: false there are health and metrics, and an explanation in place of the page', async () => {
  await using other = await Worlds.start({ env: { ...http, HTTP_PAGE: 'false' } })
  const at = await addressOf(other.bridge)
  expect((await fetch(`${at}/readyz`)).status).toBe(200)
  expect(await (await fetch(at)).text()).toContain('http.page')
  for (const path of ['api/session', 'api/live', 'api/state']) {
    expect((await fetch(`${at}/${path}`)).status, path).toBe(404)
  }
})
