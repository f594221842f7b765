import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { json } from '../../../src/web/server/reply.ts'
import { type HttpListener, listen } from '../../../src/web/server/server.ts'
import { startBridge } from '../../support/bridge.ts'
import { JumpClock } from '../../support/jump-clock.ts'
import { until } from '../../support/until.ts'
import { rawAnswer } from './door.ts'

let listener: HttpListener

const start = async (
  routes: Parameters<typeof listen>[0]['routes'] = { '/one': () => json(200, { one: 1 }) },
  host = '127.0.0.1',
) => {
  listener = await listen({
    host,
    port: 0,
    allowedHosts: ['Hub.lan', 'port.lan:8443', 'dot.lan.'],
    routes,
    log: { warn() {} },
  })
  onTestFinished(() => listener[Symbol.asyncDispose]())
  return listener.url
}

const HEADERS = [
  'cache-control: no-store',
  'x-content-type-options: nosniff',
  "content-security-policy: default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy: same-origin',
  'referrer-policy: no-referrer',
]

const raw = (text: string) => rawAnswer(Number(new URL(listener.url).port), text)

describe('the HTTP listener', () => {
  it('answers GET, and HEAD the same without a body', async () => {
    const url = await start()
    const got = await fetch(`${url}/one?a=b`)
    expect(await got.json()).toEqual({ one: 1 })
    expect(got.headers.get('keep-alive')).toBe('timeout=5')
    const head = await fetch(`${url}/one`, { method: 'HEAD' })
    expect(head.headers.get('content-length')).toBe(got.headers.get('content-length'))
    expect(await head.text()).toBe('')
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('refuses %s', async (method) => {
    const response = await fetch(`${await start()}/one`, { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, HEAD')
  })

  it.each(['/', '/two', '/one/', '/constructor', '/%2e%2e/etc/passwd'])('has nothing at %s', async (path) => {
    expect((await fetch((await start()) + path)).status).toBe(404)
  })

  it('lets no other origin read, whatever the Origin header is', async () => {
    await start()
    const answer = await raw(
      'GET /one HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer.toLowerCase()).not.toContain('access-control-')
    expect(answer).not.toContain('evil')
    for (const header of HEADERS) expect(answer.toLowerCase()).toContain(header)
  })

  it.each([
    ['that is answered immediately', 'GET /one HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    ['that is slow', 'GET /never HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    ['by a foreign name', 'GET /one HTTP/1.1\r\nHost: evil.example\r\n\r\n'],
  ])('survives an upgrade that is sent together with a request %s', async (_, before) => {
    const url = await start({ '/one': () => json(200, { one: 1 }), '/never': () => new Promise(() => {}) })
    for (const host of ['127.0.0.1', 'evil.example']) {
      await raw(`${before}GET /x HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    }
    expect((await fetch(`${url}/one`)).status).toBe(200)
  })

  it.each([
    ['http://localhost/one', 'localhost', 200],
    ['HTTPS://localhost:8099/one?a=b', 'localhost', 200],
    ['http://localhost/one', 'evil.example', 200],
    ['http://evil.example/one', 'localhost', 421],
    ['http://localhost', 'localhost', 404],
    ['ftp://localhost/one', 'localhost', 404],
  ])('takes the path and the host name from the request line: %s, with the header %s', async (target, host, status) => {
    await start()
    const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })

  const ask = (host: string) => raw(`GET /one HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

  it.each([
    ...'evil.example evil.example:8099 localhost.evil.example localhost.. 127.0.0.1.evil.example'.split(' '),
    ...'[::1 [::1].evil.example [::ffff:127.0.0.1.evil.example] [::1]:80:80 127.0.0.1:x a@b a@127.0.0.1'.split(' '),
    'x y',
  ])('reveals nothing to a page with the host name %s', async (host) => {
    await start()
    const answer = await ask(host)
    expect(answer).toMatch(/^HTTP\/1\.1 4(?:21|00) /)
    expect(answer).not.toContain('"one"')
    expect(answer).not.toContain(host)
  })

  it.each([
    ...['127.0.0.1', '127.0.0.1:8099', '10.1.2.3:80', '[::1]:8099', '[fe80::1]', 'localhost', 'LOCALHOST:1'],
    ...['localhost.', 'localhost.:1', 'hub.lan.:1', 'hub.lan:1', 'port.lan', 'dot.lan:1'],
  ])('answers requests with the host name %s', async (host) => {
    await start()
    expect(await ask(host)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('answers requests with the host name that it listens on, and with no similar one', async () => {
    // Resolvers interpret this name as 127.0.0.1, although it does not look like an address.
    await start(undefined, '127.1')
    expect(await ask('127.1')).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask('127.2')).toMatch(/^HTTP\/1\.1 421 /)
  })

  it('keeps 32 connections: a new one ends the longest idle one, or else the one that has waited longest for an answer', async () => {
    let asked = 0
    const never = () => {
      asked += 1
      return new Promise<never>(() => {})
    }
    const { hostname, port } = new URL(await start({ '/one': () => json(200, { one: 1 }), '/never': never }))
    const open = (path: string) => {
      const socket = connect(Number(port), hostname).on('error', () => {})
      onTestFinished(() => void socket.destroy())
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      return socket.resume()
    }
    const waiting = [open('/never')]
    const wait = async (count: number) => {
      while (waiting.length < count) waiting.push(open('/never'))
      await until('the requests', () => asked === count)
    }
    await wait(1)
    const idle = open('/one')
    expect(String(await once(idle, 'data'))).toContain('Connection: keep-alive')
    await wait(16)
    // The client must not reuse a connection that the listener may soon close.
    expect(String(await once(open('/one'), 'data'))).toContain('Connection: close')
    await wait(31)
    const [first] = waiting
    expect(idle.destroyed).toBe(false)
    const ended = Promise.all([once(idle, 'close'), first && once(first, 'close')])
    await wait(32)
    expect(first?.destroyed).toBe(false)
    await wait(33)
    await ended
    expect(waiting.filter(({ destroyed }) => destroyed)).toHaveLength(1)
  }, 9_000)

  it('answers eight requests that arrive together, and ends a connection with more', async () => {
    let asked = 0
    const one = () => {
      asked += 1
      return json(200, { one: 1 })
    }
    await start({ '/one': one })
    const request = 'GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const last = request.replace('Host', 'Connection: close\r\nHost')
    expect((await raw(request.repeat(7) + last)).match(/^HTTP\/1\.1 200 /gm)).toHaveLength(8)
    await raw(request.repeat(1_000))
    expect(asked).toBe(16)
  })

  it('refuses a WebSocket with the headers of every answer, and closes the connection', async () => {
    await start()
    const answer = await raw('GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 404 /)
    expect(answer.toLowerCase()).toContain('connection: close')
    for (const header of HEADERS) expect(answer.toLowerCase()).toContain(header)
  }, 9_000)

  it('closes, although a client whose WebSocket was refused keeps its side of the connection open', async () => {
    const { port } = new URL(await start())
    const client = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
    onTestFinished(() => void client.destroy())
    client.write('GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await once(client.resume(), 'end')
    await listener[Symbol.asyncDispose]()
  })

  it('answers a request that offers another protocol, such as HTTP/2, as if it offered none', async () => {
    await start()
    const offer = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
    const answer = await raw(`GET /one HTTP/1.1\r\nHost: localhost\r\n${offer}\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\{"one":1\}\n$/s)
  })

  it('closes the connection of a request with a body instead of reading it', async () => {
    await start()
    const answer = await raw(
      `GET /one HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(100)}`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*\r\n\r\n\{"one":1\}\n$/is)
  })

  it.each([
    ['endless headers', `GET /one HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ['nonsense', '\u0000\u0001\r\n\r\n', /^HTTP\/1\.1 400 /],
  ])('refuses %s and keeps running', async (_, text, expected) => {
    const url = await start()
    expect(await raw(text)).toMatch(expected)
    expect((await fetch(`${url}/one`)).status).toBe(200)
  })

  it('answers 500 without details if a handler fails', async () => {
    const url = await start({
      '/one': () => {
        throw new Error('secret detail')
      },
    })
    const response = await fetch(`${url}/one`)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('secret')
  })

  describe('of a daemon whose port is in use at first', () => {
    const blocked = async () => {
      const occupant = createServer().listen(0, '127.0.0.1')
      await once(occupant, 'listening')
      const { port } = occupant.address() as AddressInfo
      const clock = new JumpClock()
      const hub = { HUB_URL: 'http://127.0.0.1:1', HUB_API_KEY: 'key', MQTT_EMBEDDED_PORT: '0' }
      const bridge = startBridge({ ...hub, HTTP_ENABLED: 'true', HTTP_PORT: String(port) }, undefined, clock)
      onTestFinished(() => bridge.stop())
      const errors = () => bridge.lines.filter((line) => line.includes('the HTTP listener cannot start'))
      await until('the error', () => errors().length > 0)
      const isLive = () =>
        fetch(`http://127.0.0.1:${port}/livez`).then(
          ({ ok }) => ok,
          () => false,
        )
      return { occupant, clock, bridge, errors, isLive }
    }

    it('opens soon after the port is free, and logs the error once', async () => {
      const { occupant, clock, errors, isLive } = await blocked()
      clock.jump(60_000)
      occupant.close()
      await until('the answer', () => {
        clock.jump(10_000)
        return isLive()
      })
      expect(errors()).toHaveLength(1)
    })

    it('never opens if the daemon has ended', async () => {
      const { occupant, clock, bridge, isLive } = await blocked()
      await bridge.stop()
      occupant.close()
      await once(occupant, 'close')
      clock.jump(60_000)
      expect(await isLive()).toBe(false)
    })
  })

  it.each([
    ['192.0.2.1', 'this machine has no such address; change http.host'],
    ['no-such-host.invalid', 'the name cannot be resolved; change http.host'],
  ])('names the option to change if the daemon cannot listen on %s', async (host, words) => {
    const hub = { HUB_URL: 'http://127.0.0.1:1', HUB_API_KEY: 'key', MQTT_EMBEDDED_PORT: '0' }
    await using bridge = startBridge({ ...hub, HTTP_ENABLED: 'true', HTTP_HOST: host })
    await until('the error', () => bridge.lines.some((line) => line.includes('the HTTP listener cannot start')))
    expect(bridge.lines.join('')).toContain(words)
  })
})
