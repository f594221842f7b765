import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { HubClient } from '../../src/hub/client.ts'
import { type Endpoint, readEndpoint } from '../../src/hub/endpoints.ts'
import { until } from '../support/until.ts'
import { clientOf, emulate, serve } from './support.ts'

function connect(...given: Parameters<typeof clientOf>): HubClient {
  const client = clientOf(...given)
  onTestFinished(() => client.close())
  return client
}

function serveHub(listener: RequestListener): Promise<string> {
  return serve((request, response) => {
    if (request.url?.endsWith('/system/ping')) response.setHeader('content-type', 'application/json').end('true')
    else listener(request, response)
  })
}

const GET_X: Endpoint = readEndpoint({ section: 'manager', item: 'x', method: 'GET', path: '/y' })

const failure = (code: string, more: object = {}) => expect.objectContaining({ name: 'HubError', code, ...more })

describe('each kind of failure of a hub is one error', () => {
  const answer = (status: number, body: string, headers = {}) =>
    serveHub((_, response) => void response.writeHead(status, headers).end(body))

  test.each([
    [400, '{"error":"bad\\u0007ly\\nput"}', 'rejected', /400, bad ly put\.$/],
    [200, '<html>', 'nonsense', /not JSON/],
    [200, '[]', 'nonsense', /not a list of apps/],
    [200, `[${'0,'.repeat(199_998)}0]`, 'nonsense', /not a list of apps/],
    [200, `[${'0,'.repeat(200_000)}0]`, 'nonsense', /more than 200000 values/],
    [200, `{"a":[${'{},'.repeat(100_000)}0]}`, 'nonsense', /more than 200000 values/],
    [200, ','.repeat(100), 'nonsense', /not JSON/],
  ])('status %d, case %#', async (status, body, code, message) => {
    const client = connect(await answer(status, body, { location: 'http://elsewhere.invalid/' }))
    await expect(client.call('getApps', {})).rejects.toThrow(failure(code, { message: expect.stringMatching(message) }))
  })

  test('a refused connection and an invalid name: nothing was sent', async () => {
    await expect(connect('http://127.0.0.1:1').call('getApps', {})).rejects.toThrow(
      failure('unreachable', { message: expect.stringContaining('ECONNREFUSED') }),
    )
    await expect(connect('http://hub.invalid').call('getApps', {})).rejects.toThrow(failure('unreachable'))
  })

  test('no answer in time, a slow body, a connection reset: a write may have happened', async () => {
    const hub = await emulate()
    const client = connect(hub.url, { timeoutMs: 200 })
    const [id = ''] = hub.apps.keys()
    hub.behave('never-answer', { operation: 'restartApp' })
    await expect(client.call('restartApp', { id })).rejects.toThrow(failure('no_answer'))
    hub.behaveWell()
    hub.behave('dripping-body', { operation: 'getApps' })
    await expect(client.call('getApps', {})).rejects.toThrow(failure('no_answer'))
    hub.behaveWell()
    hub.forgetRequests()
    hub.behave('execute-then-reset', { operation: 'disableApp' })
    await expect(client.call('disableApp', { id })).rejects.toThrow(failure('no_answer'))
    expect(hub.requests.filter(({ operation }) => operation === 'disableApp')).toHaveLength(1)
  })

  test('a body larger than any list is cut off', async () => {
    const hub = await emulate()
    hub.behave('big-body', { megabytes: 30 })
    await expect(connect(hub.url, { timeoutMs: 10_000 }).call('getApps', {})).rejects.toThrow(failure('nonsense'))
  })

  test('an id that would name another resource is never sent', async () => {
    const hub = await emulate()
    for (const id of ['', '.', '..', '\ud800']) {
      await expect(connect(hub.url).call('getApp', { id })).rejects.toThrow(failure('invalid_argument'))
    }
    expect(hub.requests).toEqual([])
  })
})

/** Starts a hub that answers each request only on `release`, except those for the app `third`. */
async function slowHub() {
  const release: (() => void)[] = []
  const seen: (string | undefined)[] = []
  const url = await serveHub((request, response) => {
    const app = request.url?.split('/').at(-2)
    seen.push(app)
    release.push(() => response.end('null'))
    if (app === 'third') response.end('null')
  })
  return { url, release, seen }
}

test('a request that is reported as not sent is not sent later, even if a connection becomes free', async () => {
  const { url, release, seen } = await slowHub()
  // Let the first call use the only connection for longer than the second call may wait.
  let calls = 0
  const clock = {
    ...systemClock,
    after: (ms: number, task: () => void) => systemClock.after(++calls === 2 ? 10_000 : ms, task),
  }
  const client = connect(url, { maxRequests: 1, timeoutMs: 300 }, clock)
  await client.hub.identify()
  const first = client.call('enableApp', { id: 'first' })
  await expect(client.call('enableApp', { id: 'second' })).rejects.toThrow(failure('unreachable'))
  release[0]?.()
  await first
  await client.call('enableApp', { id: 'third' })
  expect(seen).toEqual(['first', 'third'])
})

test('a request that expires before its connection is free is not sent', async () => {
  const { url, release, seen } = await slowHub()
  const outcomes: string[] = []
  const client = connect(url, { maxRequests: 1, onCall: ({ outcome }) => outcomes.push(outcome) })
  await client.hub.identify()
  const first = client.call('enableApp', { id: 'first' })
  const late = new Error('late')
  let asked = 0
  const second = client.call('enableApp', { id: 'second' }, () => {
    asked += 1
    throw late
  })
  await until('the first request', () => release.length === 1)
  expect(asked).toBe(0)
  release[0]?.()
  await expect(second).rejects.toBe(late)
  await first
  expect(client.hub.isProven).toBe(true)
  expect(seen).toEqual(['first'])
  expect(outcomes).toEqual(['ok', 'ok'])
})

test("an app's own web API is called with the key, and only below the app", async () => {
  const seen: string[] = []
  const url = await serveHub((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization}`)
    response.writeHead(request.url?.endsWith('/gone') ? 404 : 200).end('<p>of the app</p>')
  })
  const client = connect(url)
  await client.hub.identify()
  expect(await client.requestApp('com.example.app', '/status?all')).toBe(200)
  expect(await client.requestApp('a/b', '/gone')).toBe(404)
  expect(seen).toEqual([`/api/app/com.example.app/status?all Bearer key`, `/api/app/a%2Fb/gone Bearer key`])
  for (const path of ['/../../manager', '/%2e%2e/x', 'status', '/a#b']) {
    await expect(client.requestApp('com.example.app', path)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  await expect(client.requestApp('..', '/x')).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('the key is never sent to the target of a redirect', async () => {
  let reached = false
  const elsewhere = await serve((_, response) => {
    reached = true
    response.end('{}')
  })
  const url = await serveHub((_, response) => void response.writeHead(307, { location: elsewhere }).end())
  await expect(connect(url).call('getApps', {})).rejects.toThrow(failure('nonsense'))
  expect(reached).toBe(false)
})

describe('a file of the hub', () => {
  const open = async () => {
    const seen: string[] = []
    const url = await serveHub(({ url: path, headers }, response) => {
      seen.push(`${path} ${headers.authorization}`)
      response.writeHead(path === '/none' ? 404 : 200).end('x'.repeat(100))
    })
    return { client: connect(url), seen }
  }

  test('is read by its path, without the key and within its size', async () => {
    const { client, seen } = await open()
    const longest = `/${'x'.repeat(511)}`
    for (const path of ['/icon.svg?v=1', longest])
      expect((await client.file(path, 100))?.toString()).toBe('x'.repeat(100))
    expect(await client.file('/none', 100)).toBeUndefined()
    await expect(client.file('/icon.svg', 99)).rejects.toThrow(failure('nonsense'))
    expect(seen).toEqual(['/icon.svg?v=1', longest, '/none', '/icon.svg'].map((path) => `${path} undefined`))
  })

  test('is not read from elsewhere, nor under an ambiguous path', async () => {
    const { client, seen } = await open()
    for (const path of ['', 'icon.svg', '//elsewhere/x', 'http://elsewhere/x', '/a/../b', '/a b', '/a#b', '/\\x'])
      expect(await client.file(path, 100), path).toBeUndefined()
    expect(await client.file(`/${'x'.repeat(512)}`, 100)).toBeUndefined()
    expect(seen).toEqual([])
  })
})

test('an operation whose path differs among hubs is sent to the other path if the hub does not know the first one, and after no other failure', async () => {
  const asked = async (status: number, body: string) => {
    const seen: string[] = []
    const url = await serveHub((request, response) => {
      seen.push(request.url ?? '')
      if (request.url?.endsWith('/say')) response.writeHead(status).end(body)
      else response.end()
    })
    const said = connect(url, { pathPrefix: 'manager' }).call('speak', { text: 'x' })
    const outcome = await said.then(
      () => 'ok',
      ({ code }) => code,
    )
    return [outcome, ...seen.map((path) => path.split('/speech-output')[1])]
  }
  expect(await asked(404, '')).toEqual(['ok', '/say', '/'])
  expect(await asked(500, '{"error":"missing_api_method"}')).toEqual(['ok', '/say', '/'])
  expect(await asked(500, '{"error":"it broke"}')).toEqual(['failed', '/say'])
  expect(await asked(403, '{"error":"missing_api_method"}')).toEqual(['forbidden', '/say'])
})

describe("an answer that is not the hub's own", () => {
  const ID = { 'x-homey-id': 'H1' }
  const LIST = JSON.stringify({ a: { id: 'a' } })

  async function answering(...answers: readonly (readonly [headers: object, body: string, status?: number])[]) {
    const left = [...answers]
    const client = connect(
      await serveHub((_, response) => {
        const [headers, body, status = 200] = left.shift() ?? [{}, '']
        response.writeHead(status, { ...headers }).end(body)
      }),
    )
    await client.hub.identify()
    return client
  }

  test('is no proof of the hub: if it lacks the identity that the hub shows, or is not JSON', async () => {
    for (const [first, then] of [
      [
        [ID, LIST],
        [{}, '{"id":"a"}'],
      ],
      [
        [{}, LIST],
        [{}, 'starting up'],
      ],
    ] as const) {
      const client = await answering(first, then)
      await client.call('getApps', {})
      expect(client.hub.isProven).toBe(true)
      await expect(client.readVerified('getApp', { id: 'a' })).rejects.toThrow(
        failure('nonsense', { message: 'Another server answered in place of the hub.' }),
      )
      expect(client.hub.isProven).toBe(false)
    }
    const own = await answering([ID, LIST], [ID, '{"id":"a","name":"A"}'])
    await own.call('getApps', {})
    expect(await own.readVerified('getApp', { id: 'a' })).toMatchObject({ name: 'A' })
  })

  test('is refused for a read if the hub shows its identity with its lists', async () => {
    const client = await answering([ID, LIST], [{}, LIST], [ID, LIST])
    await client.call('getApps', {})
    expect([client.hub.signsLists, client.hub.listSigned]).toEqual([true, true])
    await expect(client.call('getApps', {})).rejects.toThrow(failure('failed', { status: 200, foreign: true }))
    expect(client.hub.isProven).toBe(false)
    expect((await client.call('getApps', {})).size).toBe(1)
    const other = await answering([{}, LIST], [ID, LIST], [{}, LIST])
    await other.call('getApps', {})
    expect([other.hub.signsLists, other.hub.listSigned]).toEqual([false, false])
    await other.call('getApps', {})
    await expect(other.callEndpoint(GET_X)).rejects.toThrow(failure('failed', { foreign: true }))
  })

  test.each([
    ['an invalid list', 'getApps', [{}, '[]'], false],
    ['text that is not JSON', 'getApps', [{}, 'starting up'], false],
    ['an app that does not exist', 'getApp', [{}, '{}', 404], true],
    ['a write that something else confirms', 'disableApp', [{}, 'starting up'], false],
    ['a write that the hub refuses', 'disableApp', [{}, '{}', 403], true],
  ] as const)('requires a new check of the identity: %s', async (_, operation, answer, stays) => {
    const client = await answering(answer)
    await expect(client.call(operation, { id: 'a' })).rejects.toMatchObject({ name: 'HubError' })
    expect(client.hub.isProven).toBe(stays)
  })

  test('has the same effect for a generic call, except for answers of an app', async () => {
    const client = await answering([{}, 'fine'], [{}, ''], [{}, '[1'], [{}, '{"a":1}'], [{}, 'fine'])
    const ask = (endpoint: Endpoint) => client.callEndpoint(endpoint)
    const app = { ...GET_X, section: 'app' as const }
    for (const said of ['fine', null, '[1', { a: 1 }]) expect(await ask(app)).toEqual(said)
    expect(client.hub.isProven).toBe(true)
    await expect(ask(GET_X)).rejects.toThrow(
      failure('nonsense', { message: 'The hub answered with something that is not JSON.' }),
    )
    expect(client.hub.isProven).toBe(false)
  })
})

test.each<[what: string, times: 'once' | 'twice', ask: (client: HubClient) => Promise<unknown>]>([
  ['a read', 'twice', (client) => client.call('getApps', {})],
  ['a write', 'once', (client) => client.call('enableApp', { id: 'a' })],
  ['a generic call that only reads', 'twice', (client) => client.callEndpoint(GET_X)],
  ['a generic call that writes', 'once', (client) => client.callEndpoint({ ...GET_X, method: 'POST' })],
  ['a request to an app', 'once', (client) => client.requestApp('a', '/x')],
])('%s whose connection is cut is sent %s at most', async (_, times, ask) => {
  let asked = 0
  const url = await serveHub(({ socket }) => {
    asked += 1
    socket.destroy()
  })
  await expect(ask(connect(url))).rejects.toThrow(failure('no_answer'))
  expect(asked).toBe(times === 'twice' ? 2 : 1)
})

test('asks for answers that are not compressed, because servers may compress others', async () => {
  const url = await serve((request, response) => {
    const text = JSON.stringify(request.url?.includes('ping') ? true : {})
    const isPlain = request.headers['accept-encoding'] === 'identity'
    response.writeHead(200, { 'content-type': 'application/json', ...(!isPlain && { 'content-encoding': 'gzip' }) })
    response.end(isPlain ? text : gzipSync(text))
  })
  expect((await connect(url).call('getApps', {})).size).toBe(0)
})
