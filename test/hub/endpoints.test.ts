import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type EndpointCall, pathOf, readEndpoint } from '../../src/hub/endpoints.ts'
import { HubError } from '../../src/hub/errors.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'
import { clientOf, serve } from './support.ts'

const read = (line: string, more: Partial<EndpointCall> = {}) => {
  const [method = '', item = '', path] = line.split(' ')
  if (method !== 'GET' && method !== 'POST' && method !== 'PUT' && method !== 'DELETE') throw new Error(method)
  return readEndpoint({ section: 'manager', item, method, path, ...more })
}

/** Starts a hub that itself answers only pings. Returns `call`, and the method, path, body and key of all other requests. */
async function client(answer: RequestListener) {
  const seen: string[] = []
  const url = await serve((request, response) => {
    if (request.url?.endsWith('/system/ping')) return void response.setHeader('x-homey-id', 'a').end('true')
    void text(request).then((body) => {
      seen.push(`${request.method} ${request.url} ${body} ${request.headers.authorization}`)
      answer(request, response)
    })
  })
  const hub = clientOf(url, { hasApp: () => false })
  onTestFinished(() => hub.close())
  return { call: (...given: Parameters<typeof read>) => hub.callEndpoint(read(...given)), seen }
}

const refusal = (line: string, more: Partial<EndpointCall> = {}) => {
  try {
    read(line, more)
  } catch (error) {
    if (error instanceof HubError) return error.code
    throw error
  }
  return 'read'
}

describe('a path is recognised', () => {
  const cases = Object.entries(OPERATIONS).flatMap(([name, { manager, method, path, otherPath }]) =>
    [path, ...(otherPath === undefined ? [] : [otherPath])].map((one) => [name, method, manager, one] as const),
  )

  test.each(cases)('as %s: %s %s %s', (name, method, manager, template) => {
    const given = { id: 'com.a', name: 's', owner: 'o', log: 'l' }
    const held = Object.entries(given).filter(([one]) => template.includes(`:${one}`))
    const filled = held.reduce((text, [one, value]) => text.replace(`:${one}`, value), template)
    const path = template === '/' ? '/' : filled.replace(/\/$/, '')
    const { operation, parameters, app } = read(`${method} ${manager} ${path}`)
    expect(operation === 'getApp' ? ['getApp', 'getAppRecord'] : [operation]).toContain(name)
    expect(parameters).toEqual(Object.fromEntries(held))
    expect(app).toBe(template.includes(':id') ? 'com.a' : null)
  })

  test.each([
    ['DELETE apps /App/com.a', 'uninstallApp'],
    ['DELETE apps /%61pp/com.a', 'uninstallApp'],
    ['DELETE apps /app/com%2Ea', 'uninstallApp'],
    ['POST apps /APP/com.a/ReStart', 'restartApp'],
    ['POST apps /app/com.a/re\u017ftart', 'restartApp'],
    ['POST apps /app/com.a/\uff52estart', 'restartApp'],
    ['POST apps /app/com.a/%72estart', 'restartApp'],
    ['POST apps /STORE', 'installFromAppStore'],
    ['POST speech-output /SAY', 'speak'],
    ['POST speech-output', 'speak'],
  ])('in any spelling: %s is %s', (line, operation) => {
    expect(read(line)).toMatchObject({ operation })
  })

  test.each([
    'GET notifications /notification',
    'PUT apps /app/com.a/restart',
    'POST apps /app/com.a',
    'GET apps /store',
  ])('or has no known operation: %s', (line) => {
    expect(read(line).operation).toBeNull()
  })

  test('and sent in one spelling only, below either root', () => {
    expect(pathOf(read('GET apps /app/com%2Ea/s%C3%A9tting'), 'managers')).toBe(
      '/api/managers/apps/app/com.a/s%C3%A9tting',
    )
    expect(pathOf(read('POST speech-output /'), 'managers')).toBe('/api/managers/speech-output/')
    expect(pathOf(read('POST speech-output'), 'manager')).toBe('/api/manager/speech-output')
    expect(pathOf(read('POST apps /APP/com.A/re\u017ftart'), 'manager')).toBe('/api/manager/apps/app/com.A/restart')
    const query = { a: 'b&c=/../d', e: '' }
    expect(pathOf(read('GET x /y', { query }), 'manager')).toBe('/api/manager/x/y?a=b%26c%3D%2F..%2Fd&e=')
    expect(pathOf(read('GET a.b /', { section: 'app' }), 'manager')).toBe('/api/app/a.b/')
    expect(pathOf(read('GET a?b', { section: 'app', item: 'a b' }), 'manager')).toBe('/api/app/a%20b')
  })
})

test.each([
  ['/app/../../system/reboot'],
  ['/app/./x'],
  ['/app//x'],
  ['/app/x/'],
  ['//'],
  ['app'],
  ['/app/%2e%2e/x'],
  ['/app/%2E/x'],
  ['/app/..%2fx'],
  ['/app/x%2Frestart'],
  ['/app/x%5Crestart'],
  ['/app\\x'],
  ['/app/x%252Frestart'],
  ['/app/x/%2572estart'],
  ['/app/x/restart%20'],
  ['/app/x/restart;v=1'],
  ['/app/x?purgeSettings=true'],
  ['/app/x%3Fy'],
  ['/app/x#y'],
  ['/app/x%00'],
  ['/app/x%0d%0aHost:y'],
  ['/app/%'],
  ['/app/%ff'],
  ['/app/\ud800'],
  ['/app/\uff0e\uff0e/x'],
  ['/app/x\uff0frestart'],
  [`/${'a'.repeat(600)}`],
])('a path that a server may read in another way is refused: %j', (path) => {
  expect(refusal('POST apps', { path })).toBe('invalid_argument')
  expect(refusal('POST apps', { path, section: 'app' })).toBe('invalid_argument')
})

test.each(['', '..', 'Apps', 'apps/app', 'apps%2Fapp', 'äpps', '-', 'a'.repeat(65), 'apps '])(
  '%j is not a manager',
  (item) => {
    expect(refusal('GET', { item })).toBe('invalid_argument')
  },
)

test.each(['', '.', '..', 'a/b', 'a%2fb', 'a\\b', 'a;b', 'a?b', 'a\nb', '\ud800', ' a'])('%j is not an app', (item) => {
  expect(refusal('GET', { item, section: 'app' })).toBe('invalid_argument')
})

test.each<[string, Partial<EndpointCall>]>([
  ['POST x /y', { query: { _method: 'DELETE' } }],
  ['POST x /y', { query: { '': 'a' } }],
  ['POST x /y', { query: { 'a[b]': 'c' } }],
  ['POST x /y', { query: { a: 'b'.repeat(3000) } }],
  ['POST x /y', { query: { a: '\ud800' } }],
  ['GET x /y', { body: {} }],
  ['GET x /y', { body: null }],
  ['PUT apps /app/com.a', { body: { id: 'com.b' } }],
  ['PUT apps /app/com.a/enable', { body: { id: 'com.b' } }],
  ['PUT apps /app/com.a/enable', { query: { id: 'com.b' } }],
  ['PUT apps /app/com.a/no-such', { query: { id: 'com.b' } }],
  ['PUT apps /app/com.a/setting/a', { body: { name: 'b', value: 1 } }],
  ['POST apps /store', { body: { id: ['com.b'] } }],
  ['POST apps /store', { query: { id: 'com.a' }, body: { id: 'com.b' } }],
])('input that contradicts the path, or would change its meaning, is refused: %s %j', (line, more) => {
  expect(refusal(line, more)).toBe('invalid_argument')
})

test('the app of a call is taken from its path, or from its body', () => {
  expect(read('PUT apps /app/com.a/nothing-known').app).toBe('com.a')
  expect(read('POST apps /store', { body: { id: 'com.b' } }).app).toBe('com.b')
  expect(read('PUT apps /app/com.a', { body: { id: 'com.a', autoupdate: true } }).app).toBe('com.a')
  expect(read('GET com.a /x', { section: 'app' }).app).toBe('com.a')
  expect(read('GET notifications /app/com.a').app).toBeNull()
})

describe('a call', () => {
  test('sends method, path, query and body, with the key, and returns the answer', async () => {
    const { call, seen } = await client((_, response) => response.end('{"a":[1]}'))
    expect(await call('PUT x /y', { query: { q: '1' }, body: { b: true } })).toEqual({ a: [1] })
    expect(await call('DELETE com.a /z', { section: 'app' })).toEqual({ a: [1] })
    expect(seen).toEqual(['PUT /api/manager/x/y?q=1 {"b":true} Bearer key', 'DELETE /api/app/com.a/z  Bearer key'])
  })

  test.each([
    ['GET x', 401, 'unauthorized'],
    ['GET x', 403, 'forbidden'],
    ['GET x', 404, 'unsupported'],
    ['PUT apps /app/com.a/enable', 404, 'unknown_app'],
    ['GET x', 206, 'nonsense'],
    ['GET x', 302, 'nonsense'],
    ['POST x', 302, 'no_answer'],
    ['POST x /y', 500, 'unsupported', '{"error":"missing_api_method"}'],
  ])('%s that is answered %i fails as %s', async (line, status, code, body = '{}') => {
    const { call } = await client((_, response) => response.writeHead(status).end(body))
    await expect(call(line)).rejects.toMatchObject({ code, status })
  })

  test('is answered with text if an app does so, but a page is not an answer', async () => {
    const { call } = await client(({ url }, response) => response.end(url?.endsWith('page') ? '<html>' : 'fine'))
    expect(await call('GET com.a /x', { section: 'app' })).toBe('fine')
    await expect(call('GET com.a /page', { section: 'app' })).rejects.toMatchObject({ code: 'nonsense' })
    await expect(call('GET x /y')).rejects.toMatchObject({ code: 'nonsense' })
  })

  test.each(['null', 'false', '0', '""'])('to an app returns the JSON %s as a value, not as text', async (body) => {
    const { call } = await client((_, response) => response.end(body))
    expect(await call('GET com.a /x', { section: 'app' })).toBe(JSON.parse(body))
  })

  test('whose answer is above 1 MiB fails, and the outcome of a write is unknown', async () => {
    const { call } = await client((_, response) => response.end(JSON.stringify('x'.repeat(1024 * 1024))))
    await expect(call('GET x')).rejects.toMatchObject({ code: 'nonsense' })
    await expect(call('POST x')).rejects.toMatchObject({ code: 'no_answer' })
  })
})
