import type { OutgoingHttpHeaders } from 'node:http'
import { describe, expect } from 'vitest'
import { HttpGateway } from '../support/http-gateway.ts'
import { until } from '../support/until.ts'
import { asked, connected, test as hubTest, listed } from './support.ts'

const HTML = '<!doctype html><title>Welcome</title>'

interface Fixtures {
  /** The texts of all requests that other hosts received. */
  readonly received: string[]
  /** Starts an HTTP server that is not the hub. Resolves to its URL. */
  readonly stranger: (port: number, status: number, headers: OutgoingHttpHeaders, body: string) => Promise<string>
}

const test = hubTest.extend<Fixtures>({
  received: ({ task: _ }, use) => use([]),
  stranger: ({ listen, received }, use) =>
    use(async (port, status, headers, body) => {
      const { url } = await listen((request, response) => {
        received.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
        response.writeHead(status, headers).end(body)
      }, port)
      return url
    }),
})

const page = { 'content-type': 'text/html' }

test.for<[string, number, OutgoingHttpHeaders, string]>([
  ['a page', 200, page, HTML],
  ['a redirect', 302, { location: 'http://127.0.0.1:1/' }, ''],
])('a host that answers %s never gets the key', async ([, status, headers, body], { stranger, hold, received }) => {
  const url = await stranger(0, status, headers, body)
  const { hub } = hold(url)
  await until('a failure', () => hub.status.reason !== 'connecting')
  await expect(hub.call('speak', { text: 'x' })).rejects.toThrow()
  await until('the next attempt', () => received.length > 2)
  expect(hub.status).toMatchObject({ online: false, id: null })
  expect(received.join('\n')).not.toMatch(/authorization|socket\.io/)
})

test('a host is identified without the key', async ({ emulate, hold }) => {
  const emulated = await emulate()
  await listed(hold(emulated.url))
  const pings = emulated.requests.filter(({ operation }) => operation === 'ping')
  expect(pings.length).toBeGreaterThan(0)
  expect(pings.every(({ key }) => key === undefined)).toBe(true)
  expect(emulated.requests[0]?.operation).toBe('ping')
})

describe('a hub below a path', () => {
  test('is reached only there, realtime included', async ({ emulate, hold }) => {
    const emulated = await emulate()
    await using gateway = await HttpGateway.to(emulated.port, '/my/hub')
    const elsewhere: string[] = []
    gateway.rule(({ path }) => void (path.startsWith('/my/hub/') || elsewhere.push(path)))
    const watched = hold(`http://127.0.0.1:${gateway.port}/my/hub/`)
    await connected(watched)
    expect(watched.hub.status.id).toBe(emulated.id)
    expect(emulated.connections.subscribers).toBe(1)
    expect(elsewhere).toEqual([])
  })
})

test('a hub with another path prefix is found behind a server that answers every other path with a page', async ({
  emulate,
  hold,
  listen,
}) => {
  const emulated = await emulate({ flavour: 'reference' })
  const { url } = await listen(async (request, response) => {
    if (!request.url?.startsWith('/api/managers/')) return void response.writeHead(200, page).end(HTML)
    const { authorization } = request.headers
    const answer = await fetch(emulated.url + request.url, { headers: authorization ? { authorization } : {} })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  const watched = hold(url, { realtime: false })
  await listed(watched)
  expect(watched.hub.status.api).toBe('managers')
  expect(asked(emulated, 'getApps')).toBe(1)
})
