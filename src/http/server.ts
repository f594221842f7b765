/**
 * A small HTTP listener that only answers questions: GET and HEAD of a few fixed paths, with limits on everything. It
 * allows other origins nothing, and answers only by names that are its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { boundConnections } from './crowd.ts'
import { mayAsk } from './hosts.ts'

export interface Reply {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Path → answer. A rejection becomes a 500 that tells nothing. */
export type Routes = Readonly<Record<string, () => Reply | Promise<Reply>>>

export interface HttpOptions {
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  /** Names besides `host` by which it may be reached; any address and `localhost` are always good. */
  readonly allowedHosts: readonly string[]
  readonly routes: Routes
  readonly log: { warn(fields: object, message: string): void }
}

export interface HttpListener extends AsyncDisposable {
  readonly url: string
}

const MAX_CONNECTIONS = 32
const TIMEOUT_MS = 5000
/** For the head of a question, which is sent at once. */
const HEADERS_TIMEOUT_MS = 2000
const MAX_HEADER_BYTES = 8 * 1024

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
}

export function text(status: number, body: string): Reply {
  return { status, type: 'text/plain; charset=utf-8', body: `${body}\n` }
}

export function json(status: number, value: unknown): Reply {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` }
}

/** Listens; rejects if it cannot. */
export async function listen(options: HttpOptions): Promise<HttpListener> {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: TIMEOUT_MS,
      keepAliveTimeout: TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
    },
    (request, response) => void answer(request, response, options),
  )
  boundConnections(server, MAX_CONNECTIONS)
  server.setTimeout(2 * TIMEOUT_MS)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  // What goes wrong on one connection ends that one.
  server.removeAllListeners('error').on('error', (err) => options.log.warn({ err }, 'the HTTP listener has a problem'))
  return { url: urlOf(server), [Symbol.asyncDispose]: () => close(server) }
}

async function answer(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  const { log } = options
  const reply = await replyTo(request, options).catch((err: unknown) => {
    log.warn({ err }, 'a question over HTTP could not be answered')
    return text(500, 'this could not be answered')
  })
  const allow = reply.status === 405 && { allow: 'GET, HEAD' }
  // Nothing here takes a body: the connection ends instead of being read to the end of it.
  const hasBody = 'transfer-encoding' in request.headers || Number(request.headers['content-length'] ?? 0) > 0
  response.writeHead(reply.status, {
    ...HEADERS,
    ...allow,
    ...(hasBody && { connection: 'close' }),
    'content-type': reply.type,
    'content-length': Buffer.byteLength(reply.body),
  })
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

async function replyTo({ method, url = '/', headers }: IncomingMessage, options: HttpOptions): Promise<Reply> {
  const { routes, host, allowedHosts } = options
  if (!mayAsk(headers.host, [host, ...allowedHosts])) return text(421, 'by this name only if http.allowed_hosts has it')
  const path = url.split('?', 1)[0] ?? url
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (route === undefined) return text(404, `there are ${Object.keys(routes).join(', ')}`)
  if (method !== 'GET' && method !== 'HEAD') return text(405, 'questions only: GET or HEAD')
  return await route()
}

function urlOf(server: Server): string {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener on TCP has an address and a port')
  const { family, address, port } = bound
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
