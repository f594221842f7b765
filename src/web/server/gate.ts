/** The page and its API over HTTP: who asks, whether they may, and the answer of the route. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Config } from '../../config/options.ts'
import { MAX_PAYLOAD_BYTES } from '../../contract/payload.ts'
import { type AccessControl, bearerOf } from './access.ts'
import { type ApiReply, type ApiRequest, type Caller, refuse } from './api/reply.ts'
import type { Route } from './api/routes.ts'
import type { Services } from './api/services.ts'
import { readBody } from './body.ts'
import { originOf, type Sender } from './forwarded.ts'
import type { LiveChannel } from './live.ts'
import type { Page } from './page.ts'
import { type Match, routesOf } from './router.ts'
import { isQuestion, pathOf, type Reply, type RequestHandler, text } from './server.ts'

/** A payload of a command, and a little more, so that the command says itself what is too much. */
const MAX_BODY_BYTES = MAX_PAYLOAD_BYTES + 1024
/** How long the slowest route may take without a byte on the connection. */
const SLOW_MS = 15 * 60_000

const ANOTHER_TOKEN =
  'Another token is expected: open the address that hub2mqtt printed when it started, or that hub2mqtt open prints.'

const NO_PASSWORD =
  'The page and its API are for this machine only, until http.password or a token of http.tokens is set in the configuration.'

export class Gate implements RequestHandler {
  readonly #config: () => Config['http']
  readonly #access: AccessControl
  readonly #services: Services
  readonly #pages: Page
  readonly #live: LiveChannel

  /** @param config the options that hold now */
  constructor(config: () => Config['http'], access: AccessControl, services: Services, page: Page, live: LiveChannel) {
    this.#config = config
    this.#access = access
    this.#services = services
    this.#pages = page
    this.#live = live
  }

  hostOf(request: IncomingMessage): string | undefined | null {
    const sender = this.#access.senderOf(request)
    // The proxy has its users logged in under whichever name it is reached by.
    return sender.ingress ? null : sender.host
  }

  async answer(request: IncomingMessage): Promise<Reply | undefined> {
    const path = pathOf(request).slice(1)
    return path.startsWith('api/') ? whole(await this.#api(request, path)) : await this.#page(request, path)
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Reply | undefined {
    const [match] = routesOf(pathOf(request).slice(1))
    if (match?.route.run !== 'live') return whole(refuse(404, 'unknown_path', 'There is no WebSocket.'))
    const sender = this.#access.senderOf(request)
    const refused = this.#refuse(request, match.route, sender, true)
    if (refused !== undefined) return whole(refused)
    const live = this.#live
    if (live.isFull) return whole(refuse(503, 'busy', 'Too many are connected.'))
    const { access } = this.#callerOf(request, sender)
    const mayStay = () => this.#callerOf(request, sender).access === access
    live.accept(request, socket, head, { mayStay, settings: access !== 'local' })
    return undefined
  }

  close(): void {
    this.#live.close()
  }

  #callerOf(request: IncomingMessage, sender: Sender): Caller {
    return this.#access.callerOf(request, sender)
  }

  async #page(request: IncomingMessage, path: string): Promise<Reply | undefined> {
    const [access, page, config] = [this.#access, this.#pages, this.#config]
    if (!isQuestion(request)) return text(405, 'questions only: GET or HEAD')
    const sender = access.senderOf(request)
    const token = path === '' ? new URLSearchParams(request.url?.split('?')[1]).get('token') : null
    if (token !== null) return this.#enter(token, sender)
    // Nothing secret is in it: it shows the login.
    if (access.loginBy !== 'password' && this.#callerOf(request, sender).access === null) return text(403, NO_PASSWORD)
    const { frame_ancestors } = config()
    // Home Assistant shows it in a frame of its own origin.
    const ancestors = sender.ingress ? ['self', ...frame_ancestors] : frame_ancestors
    return await page.answer(path, String(request.headers['accept-encoding'] ?? ''), ancestors)
  }

  /** A browser comes with the address that was printed, and goes on to the same without the token. */
  #enter(token: string, sender: Sender): Reply {
    const access = this.#access
    const onward = (headers = {}): Reply => ({
      ...text(303, 'The page is at ./'),
      headers: { location: './', ...headers },
    })
    if (access.loginBy !== 'token') return onward()
    const login = access.enter(token, sender)
    if (login === undefined) return text(401, ANOTHER_TOKEN)
    return 'cookie' in login ? onward({ 'set-cookie': login.cookie }) : whole(tooMany(login.waitMs))
  }

  async #api(request: IncomingMessage, path: string): Promise<ApiReply> {
    const matches = routesOf(path)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const match = matches.find(({ route }) => route.method === method)
    if (match === undefined) {
      if (matches.length === 0) return refuse(404, 'unknown_path', 'There is no such path.')
      const allow = matches.map(({ route }) => route.method).join(', ')
      return refuse(405, 'method', `Expected ${allow}.`, { allow })
    }
    const sender = this.#access.senderOf(request)
    if (match.route.shown && this.#config().public_url !== null) {
      const reply = await this.#run(request, match, sender)
      return { ...reply, headers: { ...reply.headers, 'cross-origin-resource-policy': 'cross-origin' } }
    }
    return (
      this.#refuse(request, match.route, sender, match.route.method !== 'GET') ??
      (await this.#run(request, match, sender))
    )
  }

  async #run(request: IncomingMessage, { route, parameters, rest }: Match, sender: Sender): Promise<ApiReply> {
    const services = this.#services
    if (route.run === 'live') return refuse(426, 'websocket', 'Expected a WebSocket.', { upgrade: 'websocket' })
    const body = await readBody(request, MAX_BODY_BYTES)
    if (body === undefined) return refuse(413, 'too_large', `Expected at most ${MAX_BODY_BYTES} bytes.`)
    const caller = this.#callerOf(request, sender)
    const isJson = JSON_TYPE.test(request.headers['content-type'] ?? '')
    const asked: ApiRequest = { caller, parameters, rest, body, isJson, door: this.#doorOf(request, sender) }
    if (!route.slow) return await route.run(services, asked)
    // The listener's own limit is for those who are answered at once.
    const { timeout = 0 } = request.socket
    request.socket.setTimeout(SLOW_MS)
    try {
      return await route.run(services, asked)
    } finally {
      request.socket.setTimeout(timeout)
    }
  }

  /** Why a request is not answered, if it is not. */
  #refuse(request: IncomingMessage, route: Route, sender: Sender, writes: boolean): ApiReply | undefined {
    const access = this.#access
    const origin = originOf(request.headers, sender)
    if (origin === 'other') {
      const hint =
        'The page of another origin may not ask. Behind a reverse proxy: name it in http.trusted_proxies; its X-Forwarded-Proto has to be right.'
      return refuse(403, 'origin', hint)
    }
    if (writes && origin === 'absent') {
      if (access.hasCookie(request)) return refuse(403, 'origin', 'A browser must send its Origin.')
      if (!isPlain(request)) return refuse(403, 'content_type', 'Expected content-type: application/json, or no body.')
    }
    const caller = this.#callerOf(request, sender)
    const isWrong = caller.access === null && bearerOf(request) !== undefined
    const waitMs = isWrong ? access.wrongToken(sender) : 0
    if (waitMs > 0) return tooMany(waitMs)
    const isClosed = caller.access === null && !access.isOpen
    if (isClosed && !(isWrong && access.loginBy === 'token')) return refuse(403, 'no_password', NO_PASSWORD)
    if (!isClosed && isEnough(caller, route)) return undefined
    if (caller.access === 'read') return refuse(403, 'read_only', 'This token may only look.')
    const expected = access.loginBy === 'token' ? ANOTHER_TOKEN : 'Expected a login or a token.'
    return refuse(401, 'login', expected, { 'www-authenticate': 'Bearer realm="hub2mqtt"' })
  }

  #doorOf(request: IncomingMessage, sender: Sender): ApiRequest['door'] {
    const access = this.#access
    const done = (cookie: string): ApiReply => ({ status: 204, body: '', headers: { 'set-cookie': cookie } })
    return {
      async login(password) {
        const login = await access.login(password, sender)
        if (login === undefined) return refuse(401, 'password', 'Another password is expected.')
        return 'cookie' in login ? done(login.cookie) : tooMany(login.waitMs)
      },
      logout: () => done(access.logout(request, sender)),
      renew: () => access.renew(request, sender),
    }
  }
}

const whole = ({ type = 'application/json', ...reply }: ApiReply): Reply => ({ ...reply, type })

/** Each may do what those before it may. */
const RANKS: readonly Route['access'][] = ['open', 'local', 'read', 'full']

function isEnough({ access }: Caller, route: Route): boolean {
  return RANKS.indexOf(access ?? 'open') >= RANKS.indexOf(route.access)
}

function tooMany(waitMs: number): ApiReply {
  const seconds = Math.ceil(waitMs / 1000)
  return refuse(429, 'tries', `Too many tries; wait ${seconds} s.`, { 'retry-after': String(seconds) })
}

const JSON_TYPE = /^application\/json\s*(;|$)/i

/** What no form of a page can send to another origin without being asked about. */
function isPlain({ headers }: IncomingMessage): boolean {
  const type = headers['content-type']
  if (type !== undefined) return JSON_TYPE.test(type)
  return !('transfer-encoding' in headers) && Number(headers['content-length'] ?? 0) === 0
}
