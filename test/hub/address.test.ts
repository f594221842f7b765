import { expect } from 'vitest'
import { HttpGateway } from '../support/http-gateway.ts'
import { asked, connected, listed, test } from './support.ts'

test('a hub below a path is reached only there, realtime included', async ({ emulate, hold }) => {
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

test('a hub with another path prefix is found behind a server that answers every other path with a page', async ({
  emulate,
  hold,
  listen,
}) => {
  const emulated = await emulate({ flavour: 'reference' })
  const { url } = await listen(async (request, response) => {
    if (!request.url?.startsWith('/api/managers/'))
      return void response.setHeader('content-type', 'text/html').end('<p>')
    const { authorization } = request.headers
    const answer = await fetch(emulated.url + request.url, { headers: authorization ? { authorization } : {} })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  const watched = hold(url, { realtime: false })
  await listed(watched)
  expect(watched.hub.status.api).toBe('managers')
  expect(asked(emulated, 'getApps')).toBe(1)
})

test('an identity check of a known hub asks only at its own path prefix', async ({ emulate, hold }) => {
  const emulated = await emulate({ flavour: 'reference' })
  await using gateway = await HttpGateway.to(emulated.port)
  const watched = hold(`http://127.0.0.1:${gateway.port}`, { realtime: false })
  await listed(watched)
  const pings: string[] = []
  gateway.rule(({ path }) => void (path.endsWith('/ping') && pings.push(path)))
  watched.hub.client.hub.distrust()
  await watched.hub.client.call('getApps', {})
  expect([...new Set(pings)]).toEqual(['/api/managers/system/ping'])
})
