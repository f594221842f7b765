/**
 * The HTTP server: limits everything, refuses other origins, and answers only to its own host names. It serves a few
 * fixed paths, and passes all others to a `RequestHandler`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { inUrl, mayAsk } from '../../base/hosts.ts'
import { GET_ONLY, hasBody, headersOf, isGet, pathOf, type Reply, text } from './reply.ts'

/** Path → answer. A rejection becomes a 500 without details. */
export type Routes = Readonly<Record<string, () => Reply | Promise<Reply>>>

export interface HttpOptions {
  readonly host: string
  /** 0 chooses any free port. */
  readonly port: number
  /** Host names besides `host` that are accepted; any IP address and `localhost` are always accepted. */
  readonly allowedHosts: readonly string[]
  readonly routes: Routes
  /** Default: every other path is answered with 404. */
  readonly handler?: RequestHandler | undefined
  readonly log: { warn(fields: object, message: string): void }
}

/** Handles requests for which there is no fixed path. */
export interface RequestHandler {
  /** The requested host name, if it differs from `Host`; `null` if it needs no check. */
  hostOf(request: IncomingMessage): string | undefined | null
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Takes over the socket, or returns a refusal. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Reply | undefined
  /** Ends the connections that it took over. */
  close(): void
}

export interface HttpListener extends AsyncDisposable {
  readonly url: string
}

const MAX_CONNECTIONS = 32
const TIMEOUT_MS = 5000
const FAILED = 'a question over HTTP could not be answered'
/** How long pending answers may take at the end. */
const SENDING_MS = 500
/** Time limit for the headers; clients send them at once. */
const HEADERS_TIMEOUT_MS = 2000
const MAX_HEADER_BYTES = 8 * 1024

/** Headers of every answer, unless a reply says otherwise. */
const HEADERS = new Map([
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cross-origin-resource-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
])

/** Listens; rejects if it cannot. */
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
    },
    (request, response) => {
      unanswered.add(response)
      response.once('close', () => unanswered.delete(response))
      answer(request, response, options).catch(endOnError(response))
    },
  )
  boundConnections(server, MAX_CONNECTIONS)
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    // Its answer must not overtake that to an earlier request on the connection.
    if ([...unanswered].some((response) => response.socket === socket)) socket.destroy()
    else upgrade(request, socket, head, options).catch(endOnError(socket))
  })
  server.setTimeout(2 * TIMEOUT_MS)
  server.listen(port, host)
  await once(server, 'listening')
  // An error of one connection ends that connection only.
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
  response.once('finish', () => socket.end())
  send(request, response, reply)
}

/** `undefined` if the handler answers. A foreign host name is refused before the path is read. */
async function replyTo(
  request: IncomingMessage,
  options: HttpOptions,
  act: () => Reply | undefined | Promise<Reply | undefined>,
): Promise<Reply | undefined> {
  const { host, allowedHosts, handler, log } = options
  try {
    const name = handler === undefined ? request.headers.host : handler.hostOf(request)
    if (name === null || mayAsk(name, [host, ...allowedHosts])) return await act()
    return text(421, 'by this name only if http.allowed_hosts has it')
  } catch (err) {
    return failed(err, log)
  }
}

async function route(
  request: IncomingMessage,
  response: ServerResponse,
  { routes, handler }: HttpOptions,
): Promise<Reply | undefined> {
  const path = pathOf(request)
  const fixed = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (fixed !== undefined) return isGet(request) ? await fixed() : GET_ONLY
  if (handler === undefined) return text(404, `there are ${Object.keys(routes).join(', ')}`)
  await handler.answer(request, response)
  return undefined
}

export function send(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  // Do not read the rest of an unread body: close the connection instead.
  if (hasBody(request) && !request.readableEnded) response.setHeader('connection', 'close')
  response.writeHead(reply.status, headersOf(reply))
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

/** The answer to a failed request: the details are only logged. */
export function failed(err: unknown, log: HttpOptions['log']): Reply {
  log.warn({ err }, FAILED)
  return text(500, 'this could not be answered')
}

function urlOf(server: Server): string {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener on TCP has an address and a port')
  return `http://${inUrl(bound.address)}:${bound.port}`
}

/** Waits for answers that are ready, such as those to the last commands. */
async function close(server: Server, unanswered: ReadonlySet<ServerResponse>, handler?: RequestHandler): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  handler?.close()
  const sent = Promise.all([...unanswered].map((response) => new Promise((resolve) => response.once('close', resolve))))
  await Promise.race([sent, setTimeout(SENDING_MS, undefined, { ref: false })])
  server.closeAllConnections()
  await closed
}

function boundConnections(server: Server, most: number): void {
  /** Connections without an open request, the longest idle first. */
  const idle = new Set<Socket>()
  const busy = new Set<Socket>()
  const forget = (socket: Socket) => idle.delete(socket) || busy.delete(socket)
  server.on('connection', (socket: Socket) => {
    idle.add(socket)
    socket.once('close', () => forget(socket))
    if (idle.size + busy.size <= most) return
    // The new connection is idle too: if it is the only idle one, close the connection with the oldest open request.
    const [longest] = idle.size > 1 ? idle : busy
    if (longest === undefined) return
    forget(longest)
    longest.destroy()
  })
  // The handler that takes it over limits it.
  server.on('upgrade', ({ socket }) => forget(socket))
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    busy.add(socket)
    response.once('close', () => {
      if (busy.delete(socket) && !socket.destroyed) idle.add(socket)
    })
  })
}
