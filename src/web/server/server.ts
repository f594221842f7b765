import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { inUrl, isAllowedHost } from '../../base/hosts.ts'
import { GET_ONLY, hasBody, headersOf, isGet, pathOf, type Reply, text } from './reply.ts'

/** Functions that answer the requests, by path. A rejected promise becomes a 500 without details. */
export type Routes = Readonly<Record<string, () => Reply | Promise<Reply>>>

export interface HttpOptions {
  readonly host: string
  /** The port to listen on; 0 selects any free port. */
  readonly port: number
  /** The host names to accept in addition to `host`, all IP addresses and `localhost`. */
  readonly allowedHosts: readonly string[]
  readonly routes: Routes
  /** Handles all other paths; without a handler, they return 404. */
  readonly handler?: RequestHandler | undefined
  readonly log: { warn(fields: object, message: string): void }
}

/** Handles the paths that are not in `routes`. */
export interface RequestHandler {
  /** Returns the requested host name, which a proxy may have stated; `null` if no check is needed. */
  hostOf(request: IncomingMessage): string | undefined | null
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Takes over the socket of an upgrade request, or returns a refusal. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Reply | undefined
  /** Closes the sockets that the handler took over. */
  close(): void
}

export type HttpListener = AsyncDisposable & { readonly url: string }

const MAX_CONNECTIONS = 32
/** Above this number, each answer closes its connection, so that no client reuses one that is about to be closed. */
const KEPT_CONNECTIONS = MAX_CONNECTIONS / 2
/** Maximum number of unanswered requests of a connection. Without a limit, one packet could block the daemon. */
const MAX_PIPELINED = 8
const TIMEOUT_MS = 5000
const FAILED = 'an HTTP request failed'
const SENDING_MS = 500
/** Time limit for the headers of a request. It is short, because clients send the headers immediately. */
const HEADERS_TIMEOUT_MS = 2000
const MAX_HEADER_BYTES = 8 * 1024

/** Headers of every answer, unless a reply overrides them. */
const HEADERS = new Map([
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cross-origin-resource-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
])

/** Starts the server. Rejects if the server cannot listen. */
export async function listen(options: HttpOptions): Promise<HttpListener> {
  const { host, port, handler, log } = options
  const unanswered = new Set<ServerResponse>()
  const endOnError = (stream: { destroy(): void }) => (err: unknown) => {
    log.warn({ err }, FAILED)
    stream.destroy()
  }
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: TIMEOUT_MS,
      keepAliveTimeout: TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
      // Clients such as `curl --http2` offer HTTP/2 with every request. A server may ignore an offer.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    },
    (request, response) => {
      if (request.socket.destroyed) return
      unanswered.add(response)
      response.once('close', () => unanswered.delete(response))
      answer(request, response, options).catch(endOnError(response))
    },
  )
  boundConnections(server, MAX_CONNECTIONS)
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    // The answer to an upgrade must not overtake the answer to an earlier request on the same connection.
    if ([...unanswered].some((response) => response.socket === socket)) socket.destroy()
    else upgrade(request, socket, head, options).catch(endOnError(socket))
  })
  server.setTimeout(2 * TIMEOUT_MS)
  server.listen(port, host)
  await once(server, 'listening')
  // Without this listener, an error on accepting a connection would end the process.
  server.on('error', (err) => log.warn({ err }, 'the HTTP listener has a problem'))
  return { url: urlOf(server), [Symbol.asyncDispose]: () => close(server, unanswered, handler) }
}

async function answer(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  response.setHeaders(HEADERS)
  const reply = await replyTo(request, options, () => route(request, response, options))
  if (reply === undefined) return
  if (response.headersSent) response.destroy()
  else send(request, response, reply)
}

async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, options: HttpOptions): Promise<void> {
  const { handler } = options
  const takeOver = () => (handler ? handler.upgrade(request, socket, head) : text(404, ''))
  const reply = await replyTo(request, options, takeOver)
  if (reply === undefined) return
  const response = new ServerResponse(request)
  response.setHeaders(HEADERS)
  response.setHeader('connection', 'close')
  response.assignSocket(request.socket)
  // Do not wait until the client closes its side, because the listener closes only after all of its connections.
  response.once('finish', () => socket.end(() => socket.destroy()))
  send(request, response, reply)
}

/** Runs `act` if the host name is allowed. Resolves to `undefined` if the handler sends the answer itself. */
async function replyTo(
  request: IncomingMessage,
  options: HttpOptions,
  act: () => Reply | undefined | Promise<Reply | undefined>,
): Promise<Reply | undefined> {
  const { host, allowedHosts, handler, log } = options
  useOriginForm(request)
  try {
    const name = handler === undefined ? request.headers.host : handler.hostOf(request)
    if (name === null || isAllowedHost(name, [host, ...allowedHosts])) return await act()
    return text(421, 'unknown host name: add it to http.allowed_hosts')
  } catch (err) {
    return failed(err, log)
  }
}

/** Converts an absolute URL in the request line to a path, and sets the Host header to its host (RFC 9112, 3.2.2). */
function useOriginForm(request: IncomingMessage): void {
  const { url = '' } = request
  if (url.startsWith('/') || !URL.canParse(url)) return
  const { protocol, host, pathname, search } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') return
  request.url = pathname + search
  request.headers.host = host
}

async function route(request: IncomingMessage, response: ServerResponse, { routes, handler }: HttpOptions) {
  const path = pathOf(request)
  const fixed = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (fixed !== undefined) return isGet(request) ? await fixed() : GET_ONLY
  if (handler === undefined) return text(404, `not found; available: ${Object.keys(routes).join(', ')}`)
  await handler.answer(request, response)
  return undefined
}

export function send(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  // If the body has not been read completely, close the connection instead of reading the rest.
  if (hasBody(request) && !request.readableEnded) response.setHeader('connection', 'close')
  response.writeHead(reply.status, headersOf(reply))
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

/** Logs an unexpected error and returns a reply without the error's details. */
export function failed(err: unknown, log: HttpOptions['log']): Reply {
  log.warn({ err }, FAILED)
  return text(500, 'internal error')
}

function urlOf(server: Server): string {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener on TCP has an address and a port')
  return `http://${inUrl(bound.address)}:${bound.port}`
}

/** Closes the server. First waits a limited time for answers in progress, such as those to the last commands. */
async function close(server: Server, unanswered: ReadonlySet<ServerResponse>, handler?: RequestHandler): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  handler?.close()
  const sent = Promise.all([...unanswered].map((response) => new Promise((resolve) => response.once('close', resolve))))
  await Promise.race([sent, setTimeout(SENDING_MS, undefined, { ref: false })])
  server.closeAllConnections()
  await closed
}

function boundConnections(server: Server, max: number): void {
  /** Connections without a request in progress. The one that has been idle longest is first. */
  const idle = new Set<Socket>()
  /** Connection with requests in progress → their number. */
  const busy = new Map<Socket, number>()
  const forget = (socket: Socket) => idle.delete(socket) || busy.delete(socket)
  server.on('connection', (socket: Socket) => {
    idle.add(socket)
    socket.once('close', () => forget(socket))
    if (idle.size + busy.size <= max) return
    // `idle` includes the new connection. If no other one is idle, close the one with the oldest unanswered request.
    const [longest] = idle.size > 1 ? idle : busy.keys()
    if (longest === undefined) return
    forget(longest)
    longest.destroy()
  })
  // Do not count upgraded sockets, because the handler limits their number.
  server.on('upgrade', ({ socket }) => forget(socket))
  // This listener must be called before the one that answers.
  server.prependListener('request', ({ socket }, response) => {
    const count = (busy.get(socket) ?? 0) + 1
    if (count > MAX_PIPELINED) socket.destroy()
    idle.delete(socket)
    busy.set(socket, count)
    if (idle.size + busy.size > KEPT_CONNECTIONS) response.shouldKeepAlive = false
    response.once('close', () => {
      const left = (busy.get(socket) ?? 0) - 1
      if (left > 0) busy.set(socket, left)
      else if (busy.delete(socket) && !socket.destroyed) idle.add(socket)
    })
  })
}
