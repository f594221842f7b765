/** Tests that a server that takes over the hub's address never gets the key, not even with the first request. */
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect } from 'vitest'
import { WebSocketServer } from 'ws'
import { systemClock } from '../../src/base/clock.ts'
import type { HubClient } from '../../src/hub/client.ts'
import { readEndpoint } from '../../src/hub/endpoints.ts'
import { tryHub } from '../../src/web/server/setup/setup.ts'
import { KEY as EXAMINERS, reportOn } from '../cli/conformance/support.ts'
import { configured } from '../cli/doctor/support.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { clientOf, connected, test as hubTest, listed } from './support.ts'

const stranger: RequestListener = (_, response) => void response.setHeader('content-type', 'text/html').end('<p>Hello')

/** Answers a request like a newer hub, as far as polling requires. */
const hub = ({ url = '', method }: IncomingMessage) =>
  url.endsWith('/ping')
    ? 'true'
    : method === 'GET' && url.includes('/app')
      ? '{"com.a":{"id":"com.a","name":"A"}}'
      : 'null'

interface Reply {
  readonly status?: number
  readonly type?: string
  readonly id?: string
  readonly body: string
}

/** A connection between the client and the hub, through a proxy. */
interface Way {
  readonly client: Socket
  readonly isChannel: boolean
}

const JSON_TYPE = 'application/json'
const HOME = 'the-hub'

/** For each reply to a ping: whether the client sends its key to a new server, and to one in place of a known hub. */
const REPLIES: readonly (readonly [reply: Reply, atFirst: boolean, inPlace: boolean])[] = [
  ...['true', 'null', '"pong"', ' true\n', '\ufefftrue'].map((body) => [{ body }, true, false] as const),
  [{ type: 'Application/JSON; charset=utf-8', body: 'true' }, true, false],
  ...['{"login":"required"}', '{"error":"not found"}', '{"ok":true}', '{"pong":true}', '{}', '[]', '[true]', 'false']
    .concat('0', '1', '""', '"x"', '"true"', 'tru', '', '{', 'true true', '<html>', '[null]', '"hello"', 'TRUE')
    .map((body) => [{ body }, false, false] as const),
  ...['text/plain', 'text/html', '', 'application/json-seq', 'application/jsonp', 'x-application/json'].map(
    (type) => [{ type, body: 'true' }, false, false] as const,
  ),
  ...[201, 204, 301, 401, 403, 404, 500, 503].map((status) => [{ status, body: 'true' }, false, false] as const),
  ...[401, 404, 500].map((status) => [{ status, id: HOME, body: 'true' }, false, false] as const),
  ...['true', '{"login":"required"}', 'false', '', 'OK'].map((body) => [{ id: HOME, body }, true, true] as const),
  [{ id: HOME, type: 'text/html', body: '<p>' }, true, true],
  [{ id: '', body: 'true' }, true, false],
  [{ id: '', body: '{}' }, false, false],
  [{ id: 'x'.repeat(201), body: '{}' }, false, false],
]

interface Fixtures {
  /** Starts a server that gives the same reply to each request, and records each key that it receives. */
  readonly impostor: (reply: Reply) => Promise<Impostor>
  readonly client: (url: string) => HubClient
}

interface Impostor {
  readonly url: string
  readonly shown: string[]
  /** Closes all connections and continues with a different reply. */
  readonly become: (reply: Reply) => void
}

const test = hubTest.extend<Fixtures>({
  impostor: ({ listen }, use) =>
    use(async (reply) => {
      const shown: string[] = []
      let present = reply
      const { server, url } = await listen((request, response) => {
        const { status = 200, type = JSON_TYPE, id, body } = present
        if (request.headers.authorization !== undefined) shown.push(`${request.method} ${request.url}`)
        const identity = id !== undefined && { 'x-homey-id': id }
        response.writeHead(status, { ...(type && { 'content-type': type }), ...identity })
        response.end(status === 204 ? undefined : body)
      })
      const become = (next: Reply) => {
        present = next
        server.closeAllConnections()
        shown.length = 0
      }
      return { url, shown, become }
    }),
  client: ({ open }, use) => use((url) => open.adopt(clientOf(url), (made) => made.close())),
})

test.concurrent('with polling only, the identity is checked again when no connection is open', async ({
  hold,
  listen,
}) => {
  let isHub = true
  const keys: (string | undefined)[] = []
  const { server, url } = await listen((request, response) => {
    if (isHub) return void response.setHeader('content-type', 'application/json').end(hub(request))
    keys.push(request.headers.authorization)
    stranger(request, response)
  })
  const watched = hold(url, { realtime: false })
  await listed(watched)
  isHub = false
  server.closeAllConnections()
  await expect(watched.hub.call('restartApp', { id: 'com.a' })).rejects.toThrow()
  await expect(watched.hub.call('restartApp', { id: 'com.a' })).rejects.toThrow()
  expect(keys.length).toBeGreaterThan(0)
  expect(keys.filter((key) => key !== undefined)).toEqual([])
})

test.concurrent.for([
  ['some of its connections', (open) => open.filter(({ isChannel }) => !isChannel).slice(1)],
  ['all of its connections but the realtime channel', (open) => open.filter(({ isChannel }) => !isChannel)],
  ['its realtime channel only', (open) => open.filter(({ isChannel }) => isChannel)],
] satisfies [string, (open: readonly Way[]) => readonly Way[]][])(
  'a server that takes the address when the hub loses %s gets no key',
  async ([, lost], { emulated, hold, listen, open }) => {
    const keys: (string | undefined)[] = []
    const impostor = await listen((request, response) => {
      keys.push(request.headers.authorization)
      stranger(request, response)
    })
    let target = emulated.port
    const ways: Way[] = []
    const server = createServer((client) => {
      const way = { client, server: connect(target), isChannel: false }
      ways.push(way)
      client.once('data', (data) => {
        way.isChannel = String(data).includes('websocket')
      })
      for (const socket of [client, way.server]) socket.on('error', () => {})
      client.pipe(way.server).pipe(client)
    })
    open.defer(() => void server.close())
    const port = await freePort()
    await once(server.listen(port, '127.0.0.1'), 'listening')
    const watched = hold(`http://127.0.0.1:${port}`)
    await connected(watched)
    const restarts = () =>
      Promise.allSettled(Array.from({ length: 3 }, () => watched.hub.call('restartApp', { id: 'com.athom.hue' })))
    emulated.behave('slow-headers', { ms: 100, operation: 'restartApp' })
    await restarts()
    target = impostor.port
    const alive = ways.filter(({ client }) => !client.destroyed)
    expect(alive.filter(({ isChannel }) => !isChannel).length).toBeGreaterThan(1)
    for (const { client } of lost(alive)) client.resetAndDestroy()
    // Wait for the answer to a later request, which arrives after the resets.
    await fetch(`${emulated.url}/api/manager/system/ping`)
    await restarts()
    await until('a request', () => keys.length > 0)
    expect(keys.filter((key) => key !== undefined)).toEqual([])
  },
)

/** Events that make the client doubt the hub's identity, mostly the response to an earlier request. */
const DOUBTS: Readonly<Record<string, (response: ServerResponse, hub: HubClient['hub']) => unknown>> = {
  'a lost connection': (response, known) => {
    known.doubt()
    response.setHeader('x-homey-id', HOME).setHeader('x-homey-version', '1').end('null')
  },
  'an HTML page': (response) => response.setHeader('content-type', 'text/html').end('<p>'),
  'a redirect': (response) => response.writeHead(302, { 'x-homey-id': HOME }).end(),
  'another firmware': (response) => response.setHeader('x-homey-id', HOME).setHeader('x-homey-version', '2').end(),
  'the id of another hub': (response) => response.setHeader('x-homey-id', 'other').end('null'),
  'no answer': (response) => response.destroy(),
}

test.concurrent.for(Object.entries(DOUBTS))(
  'a server that takes the address during an identity check gets no key after %s: not from calls that wait, nor from later ones',
  async ([, doubt], { listen, client }) => {
    const shown: (string | undefined)[] = []
    const delayed = Promise.withResolvers<void>()
    let earlier: ServerResponse | undefined
    let pings = 0
    const { url } = await listen(async (request, response) => {
      if (request.url?.endsWith('/restart') && earlier === undefined) {
        earlier = response
        return
      }
      pings += 1
      if (pings > 2) {
        shown.push(request.headers.authorization)
        return stranger(request, response)
      }
      if (pings === 2) await delayed.promise
      const identity = { 'x-homey-id': HOME, 'x-homey-version': '1' }
      response.writeHead(200, { 'content-type': JSON_TYPE, ...identity }).end('true')
    })
    const known = client(url)
    const restart = () => known.call('restartApp', { id: 'a' })
    await known.hub.identify()
    const first = restart().catch(() => undefined)
    const response = await until('the earlier request', () => earlier)
    known.hub.doubt()
    const waiting = [restart(), known.hub.ensure()]
    await until('a check', () => pings === 2)
    doubt(response, known.hub)
    await first
    const calls = [...waiting, restart()]
    const refused = Promise.all(calls.map((call) => expect(call).rejects.toMatchObject({ code: 'nonsense' })))
    delayed.resolve()
    await refused
    // For each check, the client sends one ping for each spelling of the API root.
    expect(shown.length).toBeGreaterThan(1)
    expect(shown.filter((key) => key !== undefined)).toEqual([])
  },
)

test.concurrent('a hub whose firmware changes without a lost connection executes 16 calls at once, and reports the new firmware', async ({
  listen,
  hold,
}) => {
  let version = '1'
  let pings = 0
  const { url } = await listen((request, response) => {
    if (request.url?.endsWith('/ping')) pings += 1
    const identity = { 'x-homey-id': HOME, 'x-homey-version': version }
    response.writeHead(200, { 'content-type': JSON_TYPE, ...identity }).end(hub(request))
  })
  const watched = hold(url, { realtime: false, pollInterval: 500, pollIntervalFallback: 500 })
  await listed(watched)
  for (version of ['2', '3', '4']) {
    const before = pings
    const calls = Array.from({ length: 16 }, () => watched.hub.call('restartApp', { id: 'com.a' }))
    await Promise.all(calls)
    await until('the new firmware', () => watched.hub.status.firmware === version)
    await watched.hub.call('restartApp', { id: 'com.a' })
    expect(pings - before).toBeLessThanOrEqual(5)
  }
  expect(watched.history.filter((entry) => entry.startsWith('offline'))).toEqual([])
})

test.concurrent('calls between which connections are lost share one more identity check', async ({
  listen,
  client,
}) => {
  let pings = 0
  const delayed = Promise.withResolvers<void>()
  const { url } = await listen(async (_, response) => {
    pings += 1
    if (pings === 2) await delayed.promise
    response.writeHead(200, { 'content-type': JSON_TYPE, 'x-homey-id': HOME }).end('true')
  })
  const { hub } = client(url)
  await hub.identify()
  const checks = Array.from({ length: 8 }, () => {
    hub.doubt()
    return hub.ensure()
  })
  delayed.resolve()
  await Promise.all(checks)
  expect(pings).toBe(3)
})

test.concurrent('a hub that closes each connection after its answer can be used, with one ping before each call', async ({
  hold,
  listen,
}) => {
  const paths: string[] = []
  const { url } = await listen((request, response) => {
    paths.push(request.url ?? '')
    response.setHeader('connection', 'close').setHeader('content-type', 'application/json').end(hub(request))
  })
  const watched = hold(url, { realtime: false })
  await listed(watched)
  for (let times = 0; times < 5; times += 1) await watched.hub.call('restartApp', { id: 'com.a' })
  expect(paths.filter((path) => path.endsWith('/restart'))).toHaveLength(5)
  const pings = paths.filter((path) => path.endsWith('/ping')).length
  expect(pings).toBeLessThanOrEqual(1 + paths.length / 2)
})

const RESTART = { section: 'manager', item: 'apps', method: 'POST', path: '/app/a/restart' } as const

/** Whether more than one way to ask is tested with a reply. All ways, and all tools, use the same check of the hub. */
const isTypical = ({ body }: Reply) => ['true', '{}', ''].includes(body)

const WAYS: Readonly<Record<string, (hub: HubClient) => Promise<unknown>>> = {
  call: (hub) => hub.call('restartApp', { id: 'a' }),
  readVerified: (hub) => hub.readVerified('getApps', {}),
  callEndpoint: (hub) => hub.callEndpoint(readEndpoint(RESTART)),
  requestApp: (hub) => hub.requestApp('a', '/'),
}

describe.concurrent('the key is sent only to a host that answers a ping like a hub', () => {
  test.for(REPLIES)('by a call: %j', async ([reply, atFirst, inPlace], { impostor, client }) => {
    const outcomes: Record<string, readonly boolean[]> = {}
    const ways = Object.entries(WAYS).slice(0, isTypical(reply) ? undefined : 1)
    for (const [way, ask] of ways) {
      const { url, shown, become } = await impostor(reply)
      const isShown = (hub: HubClient) =>
        ask(hub).then(
          () => shown.length > 0,
          () => shown.length > 0,
        )
      const first = await isShown(client(url))
      become({ id: HOME, body: 'true' })
      const known = client(url)
      await known.hub.identify()
      become(reply)
      // Identify the hub, as the client does before it reads the list, and before a command that follows a refusal.
      await known.hub.identify().catch(() => undefined)
      outcomes[way] = [first, await isShown(known)]
    }
    expect(outcomes).toEqual(Object.fromEntries(ways.map(([way]) => [way, [atFirst, inPlace]])))
  })

  test.for(REPLIES.filter(([reply]) => isTypical(reply)))(
    'by doctor, the setup page, and the conformance test of a hub: %j',
    async ([reply, atFirst], { impostor }) => {
      const { url, shown } = await impostor(reply)
      const { config } = configured({ HUB_URL: url, MQTT_URL: 'mqtt://127.0.0.1:1' })
      for (const [name, hub] of Object.entries(config.hubs)) await tryHub({ name, hub, config, clock: systemClock })
      const byDoctor = shown.splice(0).length > 0
      await reportOn(url)
      expect([byDoctor, shown.length > 0]).toEqual([atFirst, atFirst])
    },
  )
})

test.concurrent.for([{ body: '{"login":"required"}' }, { body: 'true' }, { body: '{}' }])(
  'a server that replaces a hub and answers %j gets no key; the apps stay until the hub itself is back',
  async (reply, { emulate, emulated, watched, listen }) => {
    const { id } = watched.hub.status
    const apps = [...watched.hub.apps.all.keys()]
    const { port } = emulated
    await emulated.close()
    const shown: string[] = []
    let asked = 0
    const { server } = await listen((request, response) => {
      asked += 1
      if (request.headers.authorization !== undefined) shown.push(request.url ?? '')
      response.setHeader('content-type', JSON_TYPE).end(reply.body)
    }, port)
    await until('offline', () => watched.history.at(-1) === 'offline polling nonsense')
    const refused = await watched.hub.call('restartApp', { id: 'com.athom.hue' }).catch((error: unknown) => error)
    expect(shown).toEqual([])
    expect(refused).toMatchObject({ code: 'nonsense' })
    expect(asked).toBeGreaterThan(3)
    expect([watched.hub.status.id, ...watched.hub.apps.all.keys()]).toEqual([id, ...apps])
    server.closeAllConnections()
    await once(server.close(), 'close')
    await emulate({ port, ...(id !== null && { id }) })
    watched.hub.setFilter(() => true)
    await until('the hub', () => watched.hub.status.online)
    expect(watched.news).toEqual([])
  },
)

test.concurrent('a server that takes the address while the realtime channel connects does not get the key there', async ({
  hold,
  listen,
}) => {
  let isHub = true
  const sockets = new Set<Socket>()
  const { server, url } = await listen((request, response) => {
    if (!isHub) return stranger(request, response)
    response.setHeader('content-type', JSON_TYPE).end(hub(request))
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const said: string[] = []
  let hasEnded = false
  const channel = new WebSocketServer({ noServer: true })
  channel.on('connection', (socket) => {
    socket.on('close', () => {
      hasEnded = true
    })
    socket.on('message', (data) => {
      said.push(String(data))
      if (String(data) === '40') socket.send('40{"sid":"s"}')
    })
    socket.send('0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}')
  })
  server.on('upgrade', async (request, socket: Socket, head) => {
    sockets.delete(socket)
    isHub = false
    for (const other of sockets) other.end()
    await until('the hub to close', () => sockets.size === 0)
    channel.handleUpgrade(request, socket, head, (open) => channel.emit('connection', open))
  })
  hold(url)
  await until('an end', () => hasEnded)
  expect(said).toContain('40')
  expect(said.filter((text) => text.includes('key'))).toEqual([])
})

test.concurrent('a server that takes the address during a conformance test gets no key', async ({ listen }) => {
  const shown: string[] = []
  let pings = 0
  const { url } = await listen((request, response) => {
    if (request.headers.authorization?.includes(EXAMINERS)) shown.push(request.url ?? '')
    pings += request.url?.endsWith('/ping') ? 1 : 0
    const body = pings <= 2 ? 'true' : '{"login":"required"}'
    response.setHeader('connection', 'close').setHeader('content-type', JSON_TYPE).end(body)
  })
  const { usable } = await reportOn(url)
  expect(pings).toBeGreaterThan(2)
  expect({ usable, shown }).toEqual({ usable: false, shown: [] })
})
