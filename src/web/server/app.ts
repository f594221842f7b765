/** This module is loaded on the first request, because hono loads Node's HTTP client, which takes memory and time. */
import type { IncomingMessage } from 'node:http'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { parseAccept } from 'hono/utils/accept'
import { MAX_PAYLOAD_BYTES } from '../../contract/payload.ts'
import { ANOTHER_TOKEN, isJson, NO_PASSWORD, tooMany } from './access.ts'
import { type AppContext, ROUTES, type Route } from './api/routes.ts'
import { GET_ONLY, headersOf, isGet, pathOf, Refusal, type Reply, refuse, text } from './reply.ts'
import type { Sender } from './sender.ts'
import { failed, type RequestHandler, send } from './server.ts'

/** Maximum size of a body. It exceeds the limit of a payload, so that the command itself rejects larger payloads. */
const MAX_BODY_BYTES = MAX_PAYLOAD_BYTES + 1024
/** Maximum time without data on a connection while a route prepares its answer. */
const SLOW_MS = 15 * 60_000

type Env = { readonly Bindings: HttpBindings & { readonly sender: Sender } }
type Handler = MiddlewareHandler<Env>

export function siteListener(context: AppContext): RequestHandler['answer'] {
  const app = new Hono<Env>({ getPath: (_, { env } = {}) => (env === undefined ? '/' : pathOf(env.incoming)) })
  app.onError((error, { env }) => {
    if (error instanceof Refusal) return written(error.reply)
    const isClosed = env.incoming.socket.destroyed
    return written(isClosed ? text(400, 'the request is incomplete') : failed(error, context.log))
  })
  app.use('/api/*', methodNotAllowed({ app, onMethodNotAllowed: (_, methods) => written(notAllowed(methods)) }))
  for (const route of ROUTES) {
    app.on(route.method, patternOf(route), permit(context, route), LIMIT, ALLOW_SLOW, (c) => run(context, route, c))
  }
  app.all('/api/*', () => written(refuse(404, 'unknown_path', 'The path does not exist.')))
  app.all('*', async (c) => written(await pageReply(context, c.env.incoming, c.env.sender)))
  const errorHandler = (error: unknown) =>
    written(error instanceof RequestError ? text(400, 'the request cannot be read') : failed(error, context.log))
  return (incoming, outgoing) => {
    const sender = context.access.senderOf(incoming)
    // Hide the host, which the listener has already checked, because the adapter would reject some valid hosts.
    incoming.headers.host = undefined
    // Send the reply here, because the adapter would print errors to the console and send their messages to the client.
    const answer = async (request: Request) => {
      send(incoming, outgoing, await replyOf(await app.fetch(request, { incoming, outgoing, sender })))
      return RESPONSE_ALREADY_SENT
    }
    const options = { hostname: 'localhost', errorHandler, autoCleanupIncoming: false }
    return getRequestListener(answer, options)(incoming, outgoing)
  }
}

function written(reply: Reply): Response {
  const body = typeof reply.body === 'string' ? reply.body : new Uint8Array(reply.body)
  return new Response(reply.status === 204 ? null : body, { status: reply.status, headers: headersOf(reply) })
}

async function replyOf(response: Response): Promise<Reply> {
  const body = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: Object.fromEntries(response.headers), body }
}

function notAllowed(methods: string[]): Reply {
  const allow = methods.filter((method) => method !== 'HEAD').join(', ')
  return refuse(405, 'method', `Expected ${allow}.`, { allow })
}

/** Translates `api/hubs/{hub}` and `api/commands/{topic…}` to hono's syntax. */
const patternOf = ({ path }: Route) => `/${path}`.replace(/\{(\w+)…\}/, ':$1{.+}').replaceAll(/\{(\w+)\}/g, ':$1')

function permit({ access, live }: AppContext, route: Route): Handler {
  return async ({ env: { incoming, outgoing, sender } }, next) => {
    if (route.shown && live.value.http.public_url !== null) {
      outgoing.setHeader('cross-origin-resource-policy', 'cross-origin')
      return await next()
    }
    const refused = access.refusal(incoming, sender, route.access, route.method !== 'GET')
    return refused === undefined ? await next() : written(refused)
  }
}

const LIMIT: Handler = bodyLimit({
  maxSize: MAX_BODY_BYTES,
  onError: () => written(refuse(413, 'too_large', `Expected at most ${MAX_BODY_BYTES} bytes.`)),
})

/** Extends the socket timeout of the listener, which is too short for slow routes such as commands. */
const ALLOW_SLOW: Handler = async ({ env }, next) => {
  const { socket } = env.incoming
  const { timeout = 0 } = socket
  socket.setTimeout(SLOW_MS)
  await next()
  socket.setTimeout(timeout)
}

async function run(context: AppContext, route: Route, { req, env }: Context<Env>): Promise<Response> {
  const { incoming, outgoing, sender } = env
  const reply = await route.run(context, {
    incoming,
    outgoing,
    sender,
    caller: context.access.callerOf(incoming, sender),
    parameters: req.param(),
    rest: req.path.slice(route.path.indexOf('{') + 1),
    body: Buffer.from(await req.arrayBuffer()),
    isJson: isJson(incoming),
  })
  return written(reply)
}

async function pageReply(context: AppContext, request: IncomingMessage, sender: Sender): Promise<Reply> {
  const { access, page, live } = context
  const path = pathOf(request).slice(1)
  if (!isGet(request)) return GET_ONLY
  const token = path === '' ? new URLSearchParams(request.url?.split('?')[1]).get('token') : null
  if (token !== null) return enter(context, token, sender)
  // If a password is set, the page is public, because it contains no secrets and shows the login form.
  const isOpen = access.loginBy === 'password' || access.callerOf(request, sender).access !== null
  if (!isOpen) return text(403, access.loginBy === 'token' ? ANOTHER_TOKEN : NO_PASSWORD)
  const { frame_ancestors } = live.value.http
  // Home Assistant shows the page in a frame of the same origin.
  const ancestors = sender.ingress ? ['self', ...frame_ancestors] : frame_ancestors
  const encodings = parseAccept(String(request.headers['accept-encoding'] ?? '')).filter(({ q }) => q > 0)
  const accepted = encodings.map(({ type }) => type)
  const found = await page.answer(path, accepted, ancestors)
  return found ?? text(404, 'not found; available: /livez, /readyz, /healthz, /metrics')
}

/** Redirects a browser that opened the printed address to the same address without the token. */
function enter({ access }: AppContext, token: string, sender: Sender): Reply {
  const onward = (headers = {}) => ({ ...text(303, 'The page is at ./'), headers: { location: './', ...headers } })
  if (access.loginBy !== 'token') return onward()
  const login = access.enter(token, sender)
  if (login === undefined) return text(401, ANOTHER_TOKEN)
  return 'cookie' in login ? onward({ 'set-cookie': login.cookie }) : tooMany(login.waitMs)
}
