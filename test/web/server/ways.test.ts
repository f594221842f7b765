/** Calls every route with every kind of access that a client can have. */
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ROUTES, type Route } from '../../../src/web/server/api/routes.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { nginxPath, startNginx } from '../../support/nginx.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import {
  bearer,
  cookieOf,
  credentials,
  EVERYWHERE,
  fateOf,
  full,
  openDoor,
  owner,
  reader,
  START_TOKEN,
  TOKENS,
} from './door.ts'

/** The access that each route requires. A new route fails the first test until it is added here. */
const NEEDS: Readonly<Record<string, Route['access']>> = {
  'GET api/session': 'open',
  'POST api/login': 'open',
  'POST api/logout': 'open',
  'GET api/openapi.json': 'open',
  'GET api/live': 'local',
  'GET api/state': 'local',
  'GET api/hubs/{hub}/apps/{app}/icon': 'local',
  'GET api/hubs/{hub}/apps/{app}/history/{hours}': 'local',
  'GET api/config': 'read',
  'GET api/log': 'full',
  'GET api/doctor': 'full',
  'POST api/commands/{topic…}': 'full',
  'GET api/setup': 'full',
  'POST api/setup/test-hub': 'full',
  'POST api/setup/test-broker': 'full',
  'POST api/setup/apply': 'full',
}
const nameOf = ({ method, path }: Route) => `${method} ${path}`
const RANKS = ['open', 'local', 'read', 'full']

type Door = Awaited<ReturnType<typeof openDoor>>

const STATUS = { login: 401, no_password: 403, read_only: 403 }

interface Way {
  readonly env?: Readonly<Record<string, string>>
  /** Returns the port to connect to; default: the listener's port. */
  readonly port?: (door: Door) => Promise<number>
  readonly headers?: Readonly<Record<string, string>> | ((door: Door) => Promise<Readonly<Record<string, string>>>)
  /** The highest access that is granted. Routes that require more answer with `refusal`; with `none`, all routes do. */
  readonly may: 'full' | 'read' | 'local' | 'open' | 'none'
  readonly refusal?: keyof typeof STATUS
}

const PASSWORD = { HTTP_PASSWORD: 'correct horse battery' }
const WITH_TOKENS = { HTTP_TOKENS: TOKENS }
const TOKENS_ELSEWHERE = { ...WITH_TOKENS, ...EVERYWHERE }
const PROXY = { HTTP_TRUSTED_PROXIES: '127.0.0.1' }
const basic = { authorization: `Basic ${Buffer.from('nginx:login').toString('base64')}` }

/** Returns the headers of a browser that has opened the printed address. */
async function entered({ ask, origin }: Door) {
  return { cookie: cookieOf(await ask(`/?token=${START_TOKEN}`)), origin }
}
const loggedIn = async ({ login, origin }: Door) => ({ cookie: await login(PASSWORD.HTTP_PASSWORD), origin })

async function forwarder({ port }: Door): Promise<number> {
  const proxy = await TcpProxy.to(port)
  onTestFinished(() => proxy[Symbol.asyncDispose]())
  return proxy.port
}

async function plainNginx({ port }: Door): Promise<number> {
  const nginx = await startNginx(`location / { proxy_pass http://127.0.0.1:${port}; }`)
  onTestFinished(() => nginx[Symbol.asyncDispose]())
  return nginx.port
}

const WAYS: Readonly<Record<string, Way>> = {
  'a program on this machine': { may: 'local', refusal: 'login' },
  'a forwarder of TCP, such as ssh -L or kubectl port-forward': { port: forwarder, may: 'local', refusal: 'login' },
  ...(nginxPath && { 'an nginx that adds nothing': { port: plainNginx, may: 'local', refusal: 'login' } }),
  ...Object.fromEntries(
    ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'x-forwarded-host', 'x-forwarded-proto'].map(
      (name): [string, Way] => [
        `a proxy that adds ${name}`,
        { headers: { [name]: '127.0.0.1' }, may: 'none', refusal: 'no_password' },
      ],
    ),
  ),
  'a trusted proxy that adds nothing': { env: PROXY, may: 'none', refusal: 'no_password' },
  'a proxy that authenticates its users': {
    env: { ...PROXY, HTTP_INGRESS: 'true' },
    headers: { 'x-ingress-path': '/x' },
    may: 'full',
  },
  'the start-up token': { headers: owner, may: 'full' },
  'the start-up token, through a forwarder': { headers: owner, port: forwarder, may: 'full' },
  'the start-up token, through a proxy': { headers: { ...owner, 'x-forwarded-for': '10.0.0.9' }, may: 'full' },
  'the session of the start-up token': { headers: entered, may: 'full' },
  'the session of the start-up token, together with the login of a proxy': {
    headers: async (door) => ({ ...(await entered(door)), ...basic }),
    may: 'full',
  },
  'another session': {
    headers: async ({ origin, port }) => ({ cookie: `hub2mqtt_${port}=x`, origin }),
    may: 'local',
    refusal: 'login',
  },
  'the login of a proxy alone': { headers: basic, may: 'local', refusal: 'login' },
  'another token': { headers: bearer(`${START_TOKEN}x`), may: 'none', refusal: 'login' },
  'no token after Bearer': { headers: { authorization: 'Bearer' }, may: 'none', refusal: 'login' },
  'a session together with another token': {
    headers: async (door) => ({ ...(await entered(door)), ...bearer('x') }),
    may: 'none',
    refusal: 'login',
  },
  'beyond this machine': { env: EVERYWHERE, may: 'none', refusal: 'no_password' },
  'beyond this machine, the start-up token': { env: EVERYWHERE, headers: owner, may: 'none', refusal: 'no_password' },
  'with a password, no credentials': { env: PASSWORD, may: 'open', refusal: 'login' },
  'with a password, the start-up token': { env: PASSWORD, headers: owner, may: 'open', refusal: 'login' },
  'with a password, a session': { env: PASSWORD, headers: loggedIn, may: 'full' },
  'with a password, a session together with the login of a proxy': {
    env: PASSWORD,
    headers: async (door) => ({ ...(await loggedIn(door)), ...basic }),
    may: 'full',
  },
  'with tokens, no credentials, on this machine': { env: WITH_TOKENS, may: 'local', refusal: 'login' },
  'with tokens, the start-up token': { env: WITH_TOKENS, headers: owner, may: 'full' },
  'with tokens, another token that begins with one of them': {
    env: TOKENS_ELSEWHERE,
    headers: bearer('token-that-may-everything-else'),
    may: 'open',
    refusal: 'login',
  },
  'with tokens, no credentials, elsewhere': { env: TOKENS_ELSEWHERE, may: 'open', refusal: 'login' },
  'a token with full access': { env: TOKENS_ELSEWHERE, headers: full, may: 'full' },
  'a token with read access': { env: TOKENS_ELSEWHERE, headers: reader, may: 'read', refusal: 'read_only' },
}

/** The routes, with the logout at the end, because it ends the session. */
const inOrder = ROUTES.toSorted((one, other) => Number(one.path === 'api/logout') - Number(other.path === 'api/logout'))

it('every route has its required access', () => {
  expect(Object.fromEntries(ROUTES.map((route) => [nameOf(route), route.access]))).toEqual(NEEDS)
})

describe.each(Object.entries(WAYS))('%s', (_, { env = {}, port, headers = {}, may, refusal }) => {
  it(`may use routes for "${may}", the live channel with them, and the health, and nothing else`, async () => {
    const clock = new FakeClock()
    const door = await openDoor({ env, clock })
    const through = (await port?.(door)) ?? door.port
    const brought = typeof headers === 'function' ? await headers(door) : headers
    const isLive = RANKS.indexOf(may) >= RANKS.indexOf('local')
    // Without further options, nginx does not forward the upgrade to a WebSocket.
    const opened = port === plainNginx ? 426 : 'open'
    const live = await fateOf(door.webSocket(brought, `127.0.0.1:${through}`))
    expect(live).toBe(isLive ? opened : refusal && STATUS[refusal])
    for (const route of inOrder) {
      // Wait, because the limit for wrong tokens permits one attempt in this time.
      await clock.advance(30_000)
      const path = `/${route.path.replace('{hub}', 'home').replace('{app}', 'x').replace('{hours}', '24').replace('{topic…}', 'home/app/x/restart')}`
      const body = route.method === 'POST' ? { method: 'POST', body: '{}' } : {}
      const type = { 'content-type': 'application/json', host: `127.0.0.1:${door.port}` }
      const { status, code } = await door.ask(path, { ...body, port: through, headers: { ...type, ...brought } })
      const isServed = RANKS.indexOf(may) >= RANKS.indexOf(NEEDS[nameOf(route)] ?? '')
      if (isServed) expect([401, 403, 421, 429], nameOf(route)).not.toContain(status)
      else expect({ status, code }, nameOf(route)).toEqual({ status: refusal && STATUS[refusal], code: refusal })
    }
    expect(door.told.length > 0).toBe(may === 'full')
    expect((await door.ask('/livez', { port: through, headers: brought })).status).toBe(200)
  })
})

it('the values of settings are not shown to a client that is only local, neither at first nor when they change', async () => {
  const clock = new FakeClock()
  const { ask, askAsOwner, hold, webSocket } = await openDoor({ clock })
  const topic = 'b/home/app/com.example.lamp/setting/pin'
  hold(topic, '"4711"')
  hold('b/home/state', 'online')
  expect(JSON.parse((await ask('/api/state')).body)).toEqual({ 'b/home/state': 'online' })
  expect(JSON.parse((await askAsOwner('/api/state')).body)).toHaveProperty([topic], '"4711"')
  const [outside, inside] = [[], []] as [string[], string[]]
  const sockets = [webSocket(), webSocket(owner)]
  sockets[0]?.on('message', (data) => outside.push(String(data)))
  sockets[1]?.on('message', (data) => inside.push(String(data)))
  expect(await Promise.all(sockets.map(fateOf))).toEqual(['open', 'open'])
  hold(topic, '"0815"')
  hold('b/home/state', 'offline')
  await clock.advance(200)
  await expect.poll(() => [outside.length, inside.length]).toEqual([2, 2])
  expect(outside.join()).toContain('offline')
  expect(outside.join()).not.toMatch(/4711|0815|setting/)
  expect(inside[0]).toContain('4711')
  expect(inside[1]).toContain('0815')
})

describe('the printed address', () => {
  it('is the advice to a browser behind a proxy, even if scripts have tokens', async () => {
    const { ask } = await openDoor({ env: { ...WITH_TOKENS, ...PROXY }, page: { 'index.html': 'page' } })
    const { status, body } = await ask('/')
    expect(status).toBe(403)
    expect(body).toContain('open the address that hub2mqtt printed')
  })

  it('becomes a session, and the token disappears from the address bar', async () => {
    const { ask, origin } = await openDoor({ page: { 'index.html': 'page' } })
    const answer = await ask(`/?token=${START_TOKEN}`)
    expect(answer.status).toBe(303)
    expect(answer.headers).toMatchObject({
      location: './',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    expect(JSON.stringify(answer)).not.toContain(START_TOKEN)
    const cookie = answer.headers['set-cookie']?.[0] ?? ''
    expect(cookie).toMatch(/^hub2mqtt_\d+=[\w-]{43}; Max-Age=34560000; HttpOnly; SameSite=Strict$/)
    const headers = { cookie: cookie.split(';')[0] ?? '', origin }
    expect((await ask('/', { headers })).body).toBe('page')
    expect(JSON.parse((await ask('/api/session', { headers })).body)).toMatchObject({ access: 'full', login: 'token' })
    await ask('/api/logout', { method: 'POST', headers })
    expect(JSON.parse((await ask('/api/session', { headers })).body)).toMatchObject({ access: 'local' })
  })

  it('leads to the login if there is a password now, and opens nothing', async () => {
    const { ask } = await openDoor({ env: PASSWORD })
    const answer = await ask(`/?token=${START_TOKEN}`)
    expect(answer).toMatchObject({ status: 303, headers: { location: './' } })
    expect(answer.headers).not.toHaveProperty('set-cookie')
  })

  it('ends its sessions when a password is set', async () => {
    const door = await openDoor()
    const headers = await entered(door)
    door.reconfigure(PASSWORD)
    expect(await door.ask('/api/state', { headers })).toMatchObject({ status: 401 })
  })

  it.each([
    ['in the address', (door: Door, token: string) => door.ask(`/?token=${token}`)],
    ['as a header', (door: Door, token: string) => door.ask('/api/state', { headers: bearer(token) })],
  ])('with another token may be tried five times %s; the right one is always accepted', async (_, attempt) => {
    const door = await openDoor()
    for (let tries = 0; tries < 5; tries += 1) expect((await attempt(door, `wrong-${tries}`)).status).toBe(401)
    const refused = await attempt(door, 'wrong')
    expect(refused).toMatchObject({ status: 429, code: 'tries', headers: { 'retry-after': '30' } })
    expect([200, 303]).toContain((await attempt(door, START_TOKEN)).status)
    expect((await door.ask('/api/state', { headers: await entered(door) })).status).toBe(200)
  })
})

describe.skipIf(nginxPath === undefined)('nginx as the documentation configures it', () => {
  const [, block = ''] = /```nginx\n(.*?)```/s.exec(readFileSync('docs/http.md', 'utf8')) ?? []

  it('serves page, login, commands and live channel below a path, and identifies each browser by its own address', async () => {
    const env = { ...PASSWORD, ...PROXY }
    const door = await openDoor({ env, page: { 'index.html': 'page' } })
    await using nginx = await startNginx(block.replace('8099', String(door.port)))
    const origin = `http://127.0.0.1:${nginx.port}`
    const ask: Door['ask'] = (path, asking) => door.ask(`/hub2mqtt${path}`, { ...asking, port: nginx.port })
    const login = (password: string, headers = {}) => ask('/api/login', credentials(password, { origin, ...headers }))
    expect((await ask('/')).body).toBe('page')
    expect((await ask('/api/state')).status).toBe(401)
    const session = { cookie: cookieOf(await login(PASSWORD.HTTP_PASSWORD)), origin }
    const restart = { method: 'POST', headers: session }
    const here = { cookie: await door.login(PASSWORD.HTTP_PASSWORD), origin: door.origin }
    expect((await ask('/api/commands/home/app/x/restart', restart)).status).toBe(200)
    // An encoded slash in a name must not separate parts of the path.
    for (const name of ['a%2Fb', 'a%2F..%2Fb', 'a%3Fb']) {
      const path = `/api/commands/home/app/${name}/restart`
      expect((await ask(path, restart)).status).toBe(200)
      await door.ask(path, { ...restart, headers: here })
      const [direct, through] = door.told.toReversed().map(({ topic }) => topic)
      expect(through).toBe(direct)
    }
    expect(await fateOf(door.webSocket(session, `127.0.0.1:${nginx.port}/hub2mqtt`))).toBe('open')
    // A browser cannot impersonate another client, because the proxy replaces the address that the browser claims.
    for (let tries = 0; tries < 5; tries += 1) await login('wrong')
    expect((await login(PASSWORD.HTTP_PASSWORD, { 'x-forwarded-for': '192.0.2.77' })).status).toBe(429)
  })
})
