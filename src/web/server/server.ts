/**
 * A small HTTP listener: GET and HEAD of a few fixed paths, and what others answer besides, with limits on everything.
 * It allows other origins nothing, and answers only by names that are its own.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { inUrl, mayAsk } from '../../base/hosts.ts'
import { boundConnections } from './connection-limit.ts'

export interface Reply {
  readonly status: number
  readonly type: string
  readonly body: string | Buffer
  /** Besides, or in place of, those of every answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** Called when it has been sent, or cannot be. */
  readonly sent?: () => void
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
  /** Answers what is none of `routes`. */
  readonly further?: RequestHandler
  readonly log: { warn(fields: object, message: string): void }
}

/** What a listener does besides its fixed paths. */
export interface RequestHandler {
  /** By which name a request came, where that is not its `Host`; `null`: by one that needs no check. */
  hostOf(request: IncomingMessage): string | undefined | null
  /** `undefined`: there is no such path. */
  answer(request: IncomingMessage): Promise<Reply | undefined>
  /** Takes over the socket, or says why not. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Reply | undefined
  /** Ends what it took over. */
  close(): void
}

export interface HttpListener extends AsyncDisposable {
  readonly url: string
}

const MAX_CONNECTIONS = 32
const TIMEOUT_MS = 5000
/** How long answers may take to leave at the end. */
const SENDING_MS = 500
/** For the head of a question, which is sent at once. */
const HEADERS_TIMEOUT_MS = 2000
const MAX_HEADER_BYTES = 8 * 1024

const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}

export function text(status: number, body: string): Reply {
  return { status, type: 'text/plain; charset=utf-8', body: `${body}\n` }
}

export function json(status: number, value: unknown): Reply {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` }
}

/** Listens; rejects if it cannot. */
export async function listen(options: HttpOptions): Promise<HttpListener> {
  const unanswered = new Set<ServerResponse>()
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
      void answer(request, response, options)
    },
  )
  boundConnections(server, MAX_CONNECTIONS)
  server.on('upgrade', (request, socket, head) => upgrade(request, socket, head, options))
  server.setTimeout(2 * TIMEOUT_MS)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  // What goes wrong on one connection ends that one.
  server.removeAllListeners('error').on('error', (err) => options.log.warn({ err }, 'the HTTP listener has a problem'))
  return { url: urlOf(server), [Symbol.asyncDispose]: () => close(server, unanswered, options) }
}

async function answer(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  const reply = await replyTo(request, options).catch((err: unknown) => failed(err, options))
  if (reply.sent !== undefined) response.once('close', reply.sent)
  // A body that nobody has read is not read to its end: the connection ends instead.
  const hasBody = 'transfer-encoding' in request.headers || Number(request.headers['content-length'] ?? 0) > 0
  response.writeHead(reply.status, {
    ...headersOf(reply),
    ...(hasBody && !request.readableEnded && { connection: 'close' }),
  })
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, options: HttpOptions): void {
  socket.on('error', () => socket.destroy())
  const reply = upgradeReply(request, socket, head, options)
  if (reply === undefined) return
  const { status, body } = reply
  const headers = { ...headersOf(reply), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end(`${[`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines].join('\r\n')}\r\n\r\n${body}`)
}

/** `undefined`: the socket is somebody else's now. */
function upgradeReply(request: IncomingMessage, socket: Duplex, head: Buffer, options: HttpOptions): Reply | undefined {
  try {
    return (
      refusal(request, options) ?? (options.further ? options.further.upgrade(request, socket, head) : text(404, ''))
    )
  } catch (err) {
    return failed(err, options)
  }
}

function failed(err: unknown, { log }: HttpOptions): Reply {
  log.warn({ err }, 'a question over HTTP could not be answered')
  return text(500, 'this could not be answered')
}

function headersOf({ status, type, body, headers }: Reply): Record<string, string | number> {
  return {
    ...HEADERS,
    ...(status === 405 && { allow: 'GET, HEAD' }),
    ...(status !== 204 && { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
    ...headers,
  }
}

async function replyTo(request: IncomingMessage, options: HttpOptions): Promise<Reply> {
  const { routes, further } = options
  const refused = refusal(request, options)
  if (refused !== undefined) return refused
  const path = pathOf(request)
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (route === undefined) {
    return (await further?.answer(request)) ?? text(404, `there are ${Object.keys(routes).join(', ')}`)
  }
  return isQuestion(request) ? await route() : text(405, 'questions only: GET or HEAD')
}

function refusal(request: IncomingMessage, { host, allowedHosts, further }: HttpOptions): Reply | undefined {
  const asked = further === undefined ? request.headers.host : further.hostOf(request)
  if (asked === null || mayAsk(asked, [host, ...allowedHosts])) return undefined
  return text(421, 'by this name only if http.allowed_hosts has it')
}

/** As it was sent, without what follows a `?`. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? url
}

export function isQuestion({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD'
}

function urlOf(server: Server): string {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener on TCP has an address and a port')
  return `http://${inUrl(bound.address)}:${bound.port}`
}

/** Lets answers that are ready leave: those to commands are made right before the end. */
async function close(server: Server, unanswered: ReadonlySet<ServerResponse>, { further }: HttpOptions): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  further?.close()
  const sent = Promise.all([...unanswered].map((response) => new Promise((resolve) => response.once('close', resolve))))
  await Promise.race([sent, setTimeout(SENDING_MS, undefined, { ref: false })])
  server.closeAllConnections()
  await closed
}
