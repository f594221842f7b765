import { createHook } from 'node:async_hooks'
import { describe, expect, onTestFinished } from 'vitest'
import { hashPassword } from '../../../src/base/secrets.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import {
  accessWith,
  bearer,
  credentials,
  EVERYWHERE,
  fateOf,
  full,
  it,
  openDoor,
  rawAnswer,
  reader,
  SENDER,
  TOKENS,
} from './door.ts'

const PASSWORD = 'correct horse battery'
const HASH = hashPassword(PASSWORD)
const restart = { method: 'POST' } as const
const RESTART = '/api/commands/home/app/x/restart'

describe('beyond this machine', () => {
  const page = { 'index.html': 'page' }

  it('the page is refused without a password, and the option is named', async () => {
    const { ask } = await openDoor({ env: EVERYWHERE, page })
    for (const path of ['/', '/index.html', '/api/state']) {
      expect(await ask(path), path).toMatchObject({ status: 403, body: expect.stringContaining('http.password') })
    }
  })

  it('with a password, the page is served before the login', async () => {
    const { ask } = await openDoor({ env: { ...EVERYWHERE, HTTP_PASSWORD: PASSWORD }, page })
    expect((await ask('/')).body).toBe('page')
    expect(JSON.parse((await ask('/api/session')).body)).toMatchObject({ access: null, login: 'password' })
    expect((await ask('/api/state')).headers['www-authenticate']).toBe('Bearer realm="hub2mqtt"')
  })
})

describe('a token', () => {
  const env = { ...EVERYWHERE, HTTP_TOKENS: TOKENS }

  it('permits everything, and its name is logged', async () => {
    const { ask, told } = await openDoor({ env })
    expect((await ask(RESTART, { ...restart, headers: full })).status).toBe(200)
    expect(told).toMatchObject([{ by: 'restarter' }])
  })

  it('that is removed from the configuration is refused immediately, and its live channel is closed', async () => {
    const clock = new FakeClock()
    const { ask, webSocket, reconfigure } = await openDoor({ env, clock })
    const socket = webSocket(reader)
    await fateOf(socket)
    reconfigure(EVERYWHERE)
    expect((await ask('/api/state', { headers: reader })).status).toBe(403)
    const ended = new Promise((resolve) => socket.once('close', resolve))
    await clock.advance(1_000)
    expect(await ended).toBe(4401)
  })
})

describe('a login', () => {
  const env = { ...EVERYWHERE, HTTP_PASSWORD: PASSWORD }

  it.each([
    [
      'no script reads, no other site sends, no hub2mqtt at another path overwrites, and a page keeps that stays open',
      {},
      'localhost',
      /^hub2mqtt_8099=[\w-]{43}; Max-Age=34560000; HttpOnly; SameSite=Strict$/,
    ],
    ['no hub2mqtt on another port of this host overwrites', { HTTP_PORT: '8100' }, 'localhost', /^hub2mqtt_8100=/],
    ['no container on another port of this host overwrites', {}, '127.0.0.1:8123', /^hub2mqtt_8123=/],
    [
      'is for TLS only if a trusted proxy reports TLS',
      { HTTP_TRUSTED_PROXIES: '127.0.0.1' },
      'localhost',
      /; SameSite=Strict; Secure$/,
    ],
  ])('sets a cookie that %s', async (_, more, host, cookie) => {
    const { ask } = await openDoor({ env: { ...env, ...more } })
    const forwarded = { host, 'x-forwarded-proto': 'https', 'x-forwarded-for': '10.0.0.9' }
    const { headers } = await ask('/api/login', credentials(PASSWORD, forwarded))
    expect(headers['set-cookie']).toEqual([expect.stringMatching(cookie)])
  })

  it('ends at a logout, with another password, and after a week without use', async () => {
    const clock = new FakeClock()
    const { ask, login, origin, reconfigure } = await openDoor({ env, clock })
    const isIn = async (cookie: string) => (await ask('/api/state', { headers: { cookie } })).status === 200
    const first = await login(PASSWORD)
    expect(await isIn(first)).toBe(true)
    await ask('/api/logout', { method: 'POST', headers: { cookie: first, origin } })
    expect(await isIn(first)).toBe(false)
    const second = await login(PASSWORD)
    await clock.advance(6 * 24 * 3_600_000)
    expect(await isIn(second)).toBe(true)
    await clock.advance(6 * 24 * 3_600_000)
    expect(await isIn(second)).toBe(true)
    await clock.advance(7 * 24 * 3_600_000 + 1)
    expect(await isIn(second)).toBe(false)
    const third = await login(PASSWORD)
    expect(await isIn(third)).toBe(true)
    reconfigure({ ...env, HTTP_PASSWORD: 'another password' })
    expect(await isIn(third)).toBe(false)
    // Restoring the previous password must not restore the session.
    reconfigure(env)
    expect(await isIn(third)).toBe(false)
  })

  it('is found when the browser sends an older cookie of the same name before it', async () => {
    const { ask, login, origin } = await openDoor({ env })
    const [older, cookie] = [await login(PASSWORD), await login(PASSWORD)]
    const out = await ask('/api/logout', { method: 'POST', headers: { cookie: older, origin } })
    expect(out.headers['set-cookie']?.[0]).toMatch(/^hub2mqtt_\d+=; Max-Age=0; HttpOnly; SameSite=Strict$/)
    const both = { cookie: `${older}; ${cookie}`, origin }
    expect((await ask('/api/state', { headers: both })).status).toBe(200)
    await ask('/api/logout', { method: 'POST', headers: both })
    expect((await ask('/api/state', { headers: { cookie } })).status).toBe(401)
  })

  it('is kept for the latest hundred browsers', async () => {
    const { ask, login } = await openDoor({ env })
    const cookies: string[] = []
    while (cookies.length <= 100) cookies.push(await login(PASSWORD))
    const isIn = async (cookie = '') => (await ask('/api/state', { headers: { cookie } })).status
    expect([await isIn(cookies[0]), await isIn(cookies[1]), await isIn(cookies[100])]).toEqual([401, 200, 200])
  })

  it('is not affected by wrong tokens, which have their own limit', async () => {
    const { ask } = await openDoor({ env: { ...env, HTTP_TOKENS: TOKENS } })
    const attempt = async () => (await ask('/api/state', { headers: bearer('another-token-altogether') })).status
    for (let tries = 0; tries < 5; tries += 1) expect(await attempt()).toBe(401)
    expect(await attempt()).toBe(429)
    expect((await ask('/api/login', credentials(PASSWORD))).status).toBe(204)
  })

  it('is refused if a reload changes the password while it is compared', async () => {
    let password = PASSWORD
    const access = accessWith(() => password)
    const attempt = access.login(PASSWORD, SENDER)
    password = 'another password'
    expect(await attempt).toBeUndefined()
    expect(await access.login(password, SENDER)).toHaveProperty('cookie')
  })

  it('waits for at most eight other logins: passwords are compared one after the other', async () => {
    const access = accessWith(PASSWORD)
    const attempt = (password: string, from: number) => access.login(password, { ...SENDER, address: `10.0.0.${from}` })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, from) => attempt('wrong', from)))
    expect(answers).toEqual([...Array(8).fill(undefined), { waitMs: 2_000 }, { waitMs: 2_000 }])
    expect(await attempt(PASSWORD, 9)).toHaveProperty('cookie')
  })

  it('is compared with a hash, one at a time: each takes 32 MiB', async () => {
    const { ask } = await openDoor({ env: { ...env, HTTP_PASSWORD: await HASH } })
    const open = new Set<number>()
    const most = { atOnce: 0, inAll: 0 }
    const hook = createHook({
      init(id, type) {
        if (type !== 'SCRYPTREQUEST') return
        open.add(id)
        most.inAll += 1
        most.atOnce = Math.max(most.atOnce, open.size)
      },
      after: (id) => void open.delete(id),
    }).enable()
    onTestFinished(() => void hook.disable())
    const answers = await Promise.all([1, 2].map(() => ask('/api/login', credentials(PASSWORD))))
    expect(answers.map(({ status }) => status)).toEqual([204, 204])
    expect(most).toEqual({ atOnce: 1, inAll: 2 })
  })

  it('requires a password of at most 4096 characters, and nothing else', async () => {
    const { ask } = await openDoor({ env })
    const statusOf = async (body: string) => (await ask('/api/login', { ...credentials(''), body })).status
    for (const body of ['', '{', '[]', '{"password":7}', '{"password":"x","more":1}']) {
      expect(await statusOf(body), body).toBe(400)
    }
    expect(await statusOf(JSON.stringify({ password: 'x'.repeat(4096) }))).toBe(401)
    expect(await statusOf(JSON.stringify({ password: 'x'.repeat(4097) }))).toBe(400)
  })
})

describe('a page of another origin', () => {
  const foreign = { origin: 'http://evil.example' }

  it.each([
    ['a command', RESTART, 'POST', foreign],
    ['a logout', '/api/logout', 'POST', foreign],
    ['a read', '/api/state', 'GET', foreign],
    ['a command, from a page without an origin', RESTART, 'POST', { origin: 'null' }],
    ['a command, from another port', RESTART, 'POST', { origin: 'http://127.0.0.1:1' }],
    ['a command whose origin only the browser reports', RESTART, 'POST', { 'sec-fetch-site': 'cross-site' }],
    ['a read, from another port of this host', '/api/state', 'GET', { 'sec-fetch-site': 'same-site' }],
  ])('gets 403 for %s', async (_, path, method, headers) => {
    const { ask, told } = await openDoor()
    expect(await ask(path, { method, headers })).toMatchObject({ status: 403, code: 'origin' })
    expect(told).toEqual([])
  })

  it('cannot open a live channel', async ({ door: { webSocket, origin } }) => {
    expect(await fateOf(webSocket(foreign))).toBe(403)
    expect(await fateOf(webSocket({ origin: origin.replace('http:', 'https:') }))).toBe(403)
    expect(await fateOf(webSocket({ origin }))).toBe('open')
  })

  it('cannot send a form: it has another content type, and in old browsers no origin', async () => {
    const { ask, login, told, port, origin } = await openDoor({ env: { HTTP_PASSWORD: PASSWORD } })
    const session = { cookie: await login(PASSWORD), origin }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const answer = await ask(RESTART, { method: 'POST', headers: { ...session, 'content-type': type }, body: '{}' })
      expect(answer).toMatchObject({ status: 403, code: 'content_type' })
    }
    expect(await ask(RESTART, { method: 'POST', headers: session, body: '{}' })).toMatchObject({ status: 403 })
    const head = `POST ${RESTART} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`
    expect(await rawAnswer(port, `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`)).toMatch(/ 403 /)
    expect(told).toEqual([])
  })

  it('cannot use the session of a browser that sends no origin', async () => {
    const { ask, login, told, webSocket } = await openDoor({ env: { HTTP_PASSWORD: PASSWORD } })
    const cookie = await login(PASSWORD)
    expect(await ask(RESTART, { method: 'POST', headers: { cookie } })).toMatchObject({ status: 403, code: 'origin' })
    expect(await fateOf(webSocket({ cookie }))).toBe(403)
    expect(told).toEqual([])
  })
})

it('a page with a host name that resolves to this machine gets 421 for everything, including the live channel', async ({
  door: { ask, told, webSocket },
}) => {
  const headers = { host: 'evil.example', origin: 'http://evil.example' }
  for (const path of ['/', '/api/session', '/api/state', '/livez']) {
    expect((await ask(path, { headers })).status, path).toBe(421)
  }
  expect((await ask(RESTART, { method: 'POST', headers })).status).toBe(421)
  expect(await fateOf(webSocket(headers))).toBe(421)
  expect(told).toEqual([])
})

it.each([
  ...['127.0.0.1:', 'localhost:', '[::1]:8099', '[::FFFF:7F00:1]', '[::ffff:127.0.0.1]', '[::ffff:127.0.0.1]:8099'],
  ...['[2001:db8:0:0:0:0:0:1]:8099', '[2001:0db8::0001]:', '[fe80::1%25eth0]'],
])('a Host header may be any spelling of an address: %s', async (host) => {
  const { port, askAsOwner: ask, told } = await openDoor({ page: { 'index.html': 'the page' } })
  const head = `Host: ${host}\r\nConnection: close\r\n`
  expect(await rawAnswer(port, `GET / HTTP/1.1\r\n${head}\r\n`)).toMatch(/ 200 .*the page/s)
  expect(await rawAnswer(port, `GET /api/session HTTP/1.1\r\n${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  expect((await ask(RESTART, { method: 'POST', headers: { host } })).status).toBe(200)
  if (!host.includes('%')) {
    const origin = new URL(`http://${host}`).origin
    expect((await ask(RESTART, { method: 'POST', headers: { host, origin } })).status).toBe(200)
  }
  const origin = 'http://evil.example'
  expect(await ask(RESTART, { method: 'POST', headers: { host, origin } })).toMatchObject({ code: 'origin' })
  expect(told.length).toBeGreaterThan(0)
})

describe('a reverse proxy that is trusted', () => {
  const env = { HTTP_PASSWORD: PASSWORD, HTTP_TRUSTED_PROXIES: '127.0.0.1', HTTP_ALLOWED_HOSTS: 'home.example.org' }
  const forwarded = {
    'x-forwarded-for': '10.0.0.9',
    'x-forwarded-host': 'home.example.org',
    'x-forwarded-proto': 'https',
  }

  it('determines the host name of the browser, whatever the Host of its own requests is', async () => {
    const { ask, login, told } = await openDoor({ env })
    const origin = 'https://home.example.org'
    const cookie = await login(PASSWORD, { ...forwarded, origin })
    expect((await ask(RESTART, { method: 'POST', headers: { ...forwarded, cookie, origin } })).status).toBe(200)
    const other = { ...forwarded, cookie, origin: 'https://evil.example' }
    expect(await ask(RESTART, { method: 'POST', headers: other })).toMatchObject({ status: 403, code: 'origin' })
    const renamed = { ...forwarded, 'x-forwarded-host': 'evil.example', cookie, origin: 'https://evil.example' }
    expect((await ask(RESTART, { method: 'POST', headers: renamed })).status).toBe(421)
    expect(told).toHaveLength(1)
  })

  const HOME = 'home.example.org'
  it.each([
    ['https', 'https'],
    ['http', 'http'],
    ['HTTPS', 'https'],
    // Traefik sends `ws` or `wss` for a WebSocket.
    ['wss', 'https'],
    ['ws', 'http'],
    ['h2', ''],
    ['ftp', ''],
    // These are requests through a proxy that does not state the scheme.
    [undefined, 'http, https'],
    [',', 'http, https'],
  ])(
    'names the scheme as %s: of the pages at its host name, those of "%s" are of the same origin',
    async (named, same) => {
      const { ask, login, told, webSocket } = await openDoor({ env })
      const cookie = await login(PASSWORD, { 'x-forwarded-host': HOME, origin: `https://${HOME}` })
      const proto = named === undefined ? {} : { 'x-forwarded-proto': named }
      for (const scheme of ['http', 'https', 'ftp']) {
        const headers = { 'x-forwarded-host': HOME, ...proto, cookie, origin: `${scheme}://${HOME}` }
        const isSame = same.split(', ').includes(scheme)
        expect((await ask(RESTART, { method: 'POST', headers })).status, scheme).toBe(isSame ? 200 : 403)
        expect(await fateOf(webSocket(headers)), scheme).toBe(isSame ? 'open' : 403)
        expect(told.splice(0), scheme).toHaveLength(isSame ? 1 : 0)
      }
    },
  )

  it('accepts a page of either scheme for Home Assistant, which does not detect TLS in front of it', async () => {
    const { ask } = await openDoor({ env: { ...EVERYWHERE, HTTP_INGRESS: 'true', HTTP_TRUSTED_PROXIES: '127.0.0.1' } })
    for (const scheme of ['http', 'https']) {
      const ingress = {
        'x-ingress-path': '/api/hassio_ingress/x',
        'x-forwarded-host': HOME,
        'x-forwarded-proto': 'http',
      }
      const page = { method: 'POST', headers: { ...ingress, origin: `${scheme}://${HOME}` } }
      expect((await ask(RESTART, page)).status).toBe(200)
    }
  })

  it('is ignored if it is not trusted', async () => {
    const { ask, login } = await openDoor({ env: { ...env, HTTP_TRUSTED_PROXIES: '10.9.9.9' } })
    const cookie = await login(PASSWORD)
    const headers = { ...forwarded, cookie, origin: 'https://home.example.org' }
    expect(await ask(RESTART, { method: 'POST', headers })).toMatchObject({ status: 403, code: 'origin' })
  })

  it.each(['HTTP_INGRESS', 'HTTP_TRUSTED_PROXIES'])(
    'that authenticates users loses the live channel when a reload removes %s',
    async (removed) => {
      const clock = new FakeClock()
      const trusting = { ...EVERYWHERE, HTTP_INGRESS: 'true', HTTP_TRUSTED_PROXIES: '127.0.0.1' }
      const { webSocket, reconfigure } = await openDoor({ env: trusting, clock })
      const socket = webSocket({ 'x-ingress-path': '/x' })
      expect(await fateOf(socket)).toBe('open')
      const ended = new Promise((resolve) => socket.once('close', resolve))
      reconfigure({ ...trusting, [removed]: '' })
      await clock.advance(1_000)
      expect(await ended).toBe(4401)
    },
  )

  it('can authenticate users, with any host name, only if that is configured', async () => {
    const ingress = { 'x-ingress-path': '/api/hassio_ingress/x', host: 'homeassistant.local:8123' }
    const origin = 'http://homeassistant.local:8123'
    const on = await openDoor({ env: { ...EVERYWHERE, HTTP_INGRESS: 'true', HTTP_TRUSTED_PROXIES: '127.0.0.1' } })
    expect((await on.ask('/api/state', { headers: ingress })).status).toBe(200)
    expect((await on.ask(RESTART, { method: 'POST', headers: { ...ingress, origin } })).status).toBe(200)
    expect((await on.ask('/api/state', { headers: { host: '127.0.0.1' } })).status).toBe(403)
    const off = await openDoor({ env: { ...EVERYWHERE, HTTP_TRUSTED_PROXIES: '127.0.0.1' } })
    expect((await off.ask('/api/state', { headers: ingress })).status).toBe(421)
    const untrusted = await openDoor({ env: { ...EVERYWHERE, HTTP_INGRESS: 'true' } })
    expect((await untrusted.ask('/api/state', { headers: ingress })).status).toBe(421)
    expect((await untrusted.ask('/api/state', { headers: { ...ingress, host: '127.0.0.1' } })).status).toBe(403)
  })
})

describe('the icon of an app', () => {
  const ICON = '/api/hubs/home/apps/x/icon'
  // A browser sends these headers when it loads an image in a page of Home Assistant.
  const asPicture = { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' } }
  const env = { ...EVERYWHERE, HTTP_PASSWORD: PASSWORD }
  const shown = { ...env, HTTP_PUBLIC_URL: 'https://home.example.org/hub2mqtt' }

  it('is sent to clients with read access, and to no page of another origin', async () => {
    const { ask } = await openDoor({ env })
    expect(await ask(ICON, asPicture)).toMatchObject({ status: 403, code: 'origin' })
    expect((await ask(ICON)).headers['cross-origin-resource-policy']).toBe('same-origin')
  })

  it('is the only data that everyone can read, including pages of other origins, if the public address is configured', async () => {
    const { ask } = await openDoor({ env: shown })
    const answer = await ask(ICON, asPicture)
    expect(answer).toMatchObject({ status: 404, code: 'no_icon' })
    expect(answer.headers['cross-origin-resource-policy']).toBe('cross-origin')
    expect(await ask(ICON, { method: 'POST' })).toMatchObject({ status: 405 })
    for (const path of ['/api/state', '/api/config', '/api/doctor']) {
      expect(await ask(path), path).toMatchObject({ status: 401, code: 'login' })
      expect(await ask(path, asPicture), path).toMatchObject({ status: 403, code: 'origin' })
    }
    expect(await ask(RESTART, restart)).toMatchObject({ status: 401, code: 'login' })
  })
})
