import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { EXPECTATIONS } from '../../../src/cli/conformance/expectations.ts'
import { PROBES } from '../../../src/cli/conformance/probes.ts'
import { speaks } from '../../../src/cli/conformance/realtime.ts'
import { reportText } from '../../../src/cli/conformance/report.ts'
import { FLAVOURS } from '../../../src/emulator/records.ts'
import { serve } from '../../hub/support.ts'
import {
  APP,
  closeAtEnd,
  emulate,
  found,
  hasty,
  KEY,
  NOTHING,
  open,
  outcome,
  reportOn,
  SECRETS,
  said,
} from './support.ts'

closeAtEnd()

describe.concurrent.each(FLAVOURS)('a hub of the kind %s', (flavour) => {
  test('is recognised and usable, and nothing on it is changed', async () => {
    // Add an app with an update, because it shows how the hub reports updates.
    const update = { id: 'com.other.app', update: '9.9.9' }
    const hub = await emulate({
      flavour,
      apps: [{ id: APP, name: 'Rose garden', settings: { gate_code: '1' } }, update],
    })
    const report = await reportOn(hub.url)
    expect(report.problems).toEqual([])
    expect(said(report)).toMatchObject({ differs: [], operations: [] })
    expect(report).toMatchObject({ format: 1, usable: true, hub: { kind: flavour, apps: 2 }, left: null })
    expect(hub.requests.filter(({ via, method }) => via === 'rest' && method !== 'GET')).toEqual([])
    for (const name of ['getApps', 'getApp', 'getAppSettings', 'getAppSetting', 'getAppLocales']) {
      expect(outcome(report, name), name).toBe('ok')
    }
    for (const name of ['restartApp', 'uninstallApp', 'createBackup'])
      expect(outcome(report, name), name).toBe('not_tried')
  })

  test('is examined with writes, without reporting names, keys, addresses or values, and the app is restored', async () => {
    const hub = await emulate({ flavour })
    const before = hub.apps.get(APP)
    const report = await reportOn(hub.url, { app: APP, writes: true })
    expect(report.problems).toEqual([])
    expect(said(report)).toEqual(NOTHING)
    expect(report.left).toEqual([])
    const now = hub.apps.get(APP)
    for (const key of ['enabled', 'autoupdate', 'channel', 'version', 'state'])
      expect(now?.[key], key).toEqual(before?.[key])
    expect(hub.settings(APP)).toEqual({ gate_code: '4711-gate' })
    for (const id of 'setting-kept setting-gone autoupdate channel-ignored restart disable enable'.split(' ')) {
      expect(found(report, id), id).toMatchObject({ result: 'agrees' })
    }
    expect(found(report, 'events')?.result).not.toBe('unknown')
    const hasMore = flavour === 'older' || flavour === 'reference'
    expect(outcome(report, 'garbageCollectApp')).toBe(hasMore ? 'ok' : 'absent')
    expect(hub.spoken).toEqual(hasMore ? ['hub2mqtt'] : [])
    expect(found(report, 'downgrade')?.result).not.toBe('unknown')
    expect(outcome(report, 'uninstallApp')).toBe('not_tried')
    for (const text of [JSON.stringify(report), reportText(report)]) {
      for (const secret of [...SECRETS, hub.id, String(hub.port)]) expect(text).not.toContain(secret)
    }
  })
})

describe.concurrent('the report', () => {
  test('has these keys', async () => {
    const report = await reportOn((await emulate()).url)
    expect(Object.keys(report).sort()).toEqual(
      'app expectations fields format hub left limit operations problems realtime unseen usable version'.split(' '),
    )
    expect(report.operations.map(({ name }) => name)).toEqual(Object.keys(PROBES))
    expect(report.expectations.map(({ id }) => id)).toEqual(EXPECTATIONS.map(({ id }) => id))
    expect(new Set(EXPECTATIONS.map(({ id }) => id)).size).toBe(EXPECTATIONS.length)
    expect(report.fields).toMatchObject({ id: 'string', enabled: 'boolean', '(other)': 'string' })
    expect(report.app).toMatch(/^app-[0-9a-f]{8}$/)
  })

  test('is equal for the same hub, and does not identify an app of another hub by its hash', async () => {
    const [one, again] = await Promise.all([reportOn((await emulate()).url), reportOn((await emulate()).url)])
    const other = await reportOn((await emulate({ id: 'another-hub' })).url)
    expect(again.app).toBe(one.app)
    expect(other.app).not.toBe(one.app)
  })

  test('as text has the verdict, the kind, each operation and each expectation', async () => {
    const report = await reportOn((await emulate({ flavour: 'older' })).url)
    const text = reportText(report)
    expect(text).toMatch(/^hub2mqtt can work with this hub and key\.\n/)
    expect(text).toContain('older (firmware 8.1.6')
    for (const { name } of report.operations) expect(text).toContain(`  ${name} `)
    for (const { says } of report.expectations) expect(text).toContain(says)
    for (const line of text.split('\n')) expect(line).toBe(line.trimEnd())
  })
})

describe.concurrent('a hub that is not usable', () => {
  test('gives the key too few permissions', async () => {
    const hub = await emulate({ keys: { [KEY]: ['homey.speech'] } })
    expect(await reportOn(hub.url)).toMatchObject({
      ...{ usable: false, hub: { apps: null } },
      problems: ['the key may not list the apps: 403 missing_scopes'],
    })
  })

  test.for([
    [undefined, { hub: null }],
    [['getApps'], { hub: { apps: null } }],
  ] as const)('has no licence, for the operations %j', async ([operation, wanted]) => {
    const hub = await emulate()
    hub.behave('subscription-inactive', operation && { operation })
    const report = await reportOn(hub.url)
    expect(report).toMatchObject({ usable: false, problems: ['the hub has no valid licence'], ...wanted })
    expect(said(report)).toEqual(NOTHING)
  })

  test('answers with an invalid list', async () => {
    const hub = await emulate()
    hub.behave('wrong-shape', { operation: 'getApps' })
    const report = await reportOn(hub.url)
    expect(report.usable).toBe(false)
    expect(report.operations.find(({ name }) => name === 'getApps')?.differs).toMatch(/array|string|no record/)
  })

  const named = (ids: readonly number[]) => Object.fromEntries(ids.map((id) => [`app${id}`, { id: `app${id}` }]))
  test.for([
    [
      'more than 5000 apps',
      200,
      named([...Array(5001).keys()]),
      'the list of apps: The hub listed more than 5000 apps',
    ],
    ['only a part of the list', 206, named([1]), 'the list of apps has the unexpected status 206'],
  ] as const)('lists %s', async ([, status, value, problem]) => {
    const hub = await emulate()
    hub.behave('pretend', { operation: 'getApps', status, value })
    expect(await reportOn(hub.url)).toMatchObject({ usable: false, problems: [problem] })
  })

  test('is not a hub: the key is not sent there', { concurrent: false }, async () => {
    const keys: unknown[] = []
    const url = await serve((request, response) => {
      keys.push(request.headers.authorization)
      response.setHeader('content-type', 'text/html').end('<html>')
    })
    const report = await reportOn(url)
    expect(report).toMatchObject({ usable: false, hub: null })
    expect(report.problems[0]).toContain('the key was not sent')
    expect(keys).toEqual([undefined, undefined])
    expect(reportText(report)).toContain('cannot work with it')
  })

  test('is unreachable', async () => {
    const report = await reportOn('http://127.0.0.1:1')
    expect(report.problems[0]).toContain('no answer (unreachable)')
  })

  test('lacks the app that may be changed', async () => {
    const hub = await emulate()
    const report = await reportOn(hub.url, { app: 'no.such.app', writes: true })
    expect(report.problems).toEqual(['the app that may be changed does not exist: nothing was changed'])
    expect(hub.requests.filter(({ via, method }) => via === 'rest' && method !== 'GET')).toEqual([])
    const reasons = report.operations.flatMap(({ method, untried }) => (method === 'GET' ? [] : (untried ?? [])))
    expect(new Set(reasons)).toEqual(new Set(['the app does not exist', 'never done']))
    expect(report.operations.find(({ name }) => name === 'getAppSettings')?.untried).toBe('the app does not exist')
    expect(said(report)).toEqual(NOTHING)
  })
})

describe.concurrent('the realtime channel', () => {
  test.for([
    ['refuse-handshake', { handshake: 'refused', open: 'not_tried', subscribe: 'not_tried' }],
    ['refuse-namespace', { handshake: 'ok', open: 'refused', subscribe: 'not_tried' }],
    ['drop-realtime', { handshake: 'ok', open: 'dropped', subscribe: 'not_tried' }],
    ['refuse-subscription', { handshake: 'ok', open: 'ok', subscribe: 'refused' }],
  ] as const)(
    'that fails with %s is reported up to that step, and the hub is still usable',
    async ([behaviour, seen]) => {
      const hub = await emulate({ flavour: 'older' })
      hub.behave(behaviour)
      const report = await reportOn(hub.url)
      expect(report.realtime?.session).toMatchObject(seen)
      expect(report.usable).toBe(true)
    },
  )

  test('is reported to require the token if it does, and the token is then sent', async () => {
    const hub = await emulate({ flavour: 'older' })
    hub.behave('namespace-token')
    const report = await reportOn(hub.url)
    expect(report.realtime).toMatchObject({
      session: { tokenOffered: true, open: 'refused' },
      session_with_token: { open: 'ok', subscribe: 'ok' },
    })
    expect(found(report, 'namespace-token')).toMatchObject({ result: 'differs', found: 'without: refused; with: ok' })
    expect(found(report, 'subscribe')).toMatchObject({ result: 'agrees' })
  })
})

describe.concurrent('the limit of requests', () => {
  test('is only tested on request, and then with six requests', async () => {
    const hub = await emulate({ rateLimit: true })
    const clock = hasty(50)
    expect((await reportOn(hub.url, { clock })).limit).toBeNull()
    hub.forgetRequests()
    const { limit } = await reportOn(hub.url, { limits: true, clock })
    expect(limit?.sent).toBe(6)
    expect(limit?.limitedAfter).toBeLessThan(6)
  })

  test('is reported as absent if there is none', async () => {
    const hub = await emulate({ flavour: 'older' })
    const report = await reportOn(hub.url, { limits: true })
    expect(report.limit).toEqual({ sent: 6, limitedAfter: null, retryAfter: null })
    expect(found(report, 'rate-limit')).toMatchObject({ result: 'unknown', found: 'none of 6' })
  })
})

test('a missing feature is reported with the refusal of the hub', async () => {
  const hub = await emulate({ flavour: 'newer' })
  hub.behave('missing-api-method', { operation: 'getAppLocales' })
  const report = await reportOn(hub.url)
  expect(report.operations.find(({ name }) => name === 'getAppLocales')).toMatchObject({
    outcome: 'absent',
    status: 500,
    error: 'missing_api_method',
  })
})

test('a list of apps that is not JSON is reported as such', async () => {
  const hub = await emulate({ flavour: 'older' })
  hub.behave('not-json', { operation: 'getApps', text: 'apps' })
  expect((await reportOn(hub.url)).problems).toEqual(['the list of apps returns no JSON, not an object'])
})

test('a server with Socket.IO 2, which ignores the version that a client asks for, does not accept protocol 4', async () => {
  const server = open.adopt(new WebSocketServer({ host: '127.0.0.1', port: 0 }), (one) => one.close())
  server.on('connection', (socket) => {
    for (const packet of ['0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":5000}', '40'])
      socket.send(packet)
  })
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
  expect(await Promise.all([speaks(3, url, 5_000), speaks(4, url, 5_000)])).toEqual([true, false])
})
