/** Somebody else takes the hub's address: the key must not go there, not even with the first request. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../support/until.ts'
import { connected, emulate, hold, listed } from './support.ts'

const stranger: RequestListener = (_, response) => void response.setHeader('content-type', 'text/html').end('<p>Hello')

async function listen(listener: RequestListener, port = 0) {
  const server = createServer(listener)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { server, port: typeof address === 'object' ? (address?.port ?? 0) : 0 }
}

/** A hub of the newer kind that polling can live on. */
const hub = ({ url = '', method }: IncomingMessage) =>
  url.endsWith('/ping')
    ? 'true'
    : method === 'GET' && url.includes('/app')
      ? '{"com.a":{"id":"com.a","name":"A"}}'
      : 'null'

test('where only polling tells of the hub, it is asked for again once no connection is open', async () => {
  let isHub = true
  const keys: (string | undefined)[] = []
  const { server, port } = await listen((request, response) => {
    if (isHub) return void response.setHeader('content-type', 'application/json').end(hub(request))
    keys.push(request.headers.authorization)
    stranger(request, response)
  })
  const watched = hold(`http://127.0.0.1:${port}`, { realtime: false })
  await listed(watched)
  isHub = false
  server.closeAllConnections()
  await expect(watched.hub.call('restartApp', { id: 'com.a' })).rejects.toThrow()
  await expect(watched.hub.call('restartApp', { id: 'com.a' })).rejects.toThrow()
  expect(keys.length).toBeGreaterThan(0)
  expect(keys.filter((key) => key !== undefined)).toEqual([])
})

test('when the realtime channel falls, what is sent at once does not take the key along', async () => {
  const emulated = await emulate()
  const watched = hold(emulated.url)
  await connected(watched)
  const { port } = emulated
  await emulated.close()
  const keys: (string | undefined)[] = []
  await listen((request, response) => {
    keys.push(request.headers.authorization)
    stranger(request, response)
  }, port)
  const calls = Array.from({ length: 20 }, () => watched.hub.call('restartApp', { id: 'com.athom.hue' }))
  const outcomes = await Promise.allSettled(calls)
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
  await until('a question', () => keys.length > 0)
  expect(keys.filter((key) => key !== undefined)).toEqual([])
})

test('a hub that ends each connection with its answer can be used, with one question before each call', async () => {
  const paths: string[] = []
  const { port } = await listen((request, response) => {
    paths.push(request.url ?? '')
    response.setHeader('connection', 'close').setHeader('content-type', 'application/json').end(hub(request))
  })
  const watched = hold(`http://127.0.0.1:${port}`, { realtime: false })
  await listed(watched)
  for (let times = 0; times < 5; times += 1) await watched.hub.call('restartApp', { id: 'com.a' })
  expect(paths.filter((path) => path.endsWith('/restart'))).toHaveLength(5)
  const pings = paths.filter((path) => path.endsWith('/ping')).length
  expect(pings).toBeLessThanOrEqual(1 + paths.length / 2)
})
