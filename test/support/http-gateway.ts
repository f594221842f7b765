/** An HTTP gateway, portal or proxy between a client and a server. It can answer in place of the server. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export interface GatewayRequest {
  readonly method: string
  /** The path, including the query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly upgrade: boolean
}

export interface Reply {
  readonly status: number
  /** The header fields, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** What the gateway does: it answers, cuts the connection, or forwards the request and changes or cuts the answer. */
export type Verdict = Reply | 'cut' | { readonly change: Change }

export type Change = (answer: Reply) => Reply | 'cut' | Promise<Reply | 'cut'>

/** Returns the verdict on a request; `undefined` if the rule does not apply to it. */
export type Rule = (request: GatewayRequest) => Verdict | undefined

/** How long an idle connection stays open. The hub has the same limit. */
const KEEP_ALIVE_MS = 5000

/** A gateway that forwards everything to which no rule applies. */
export class HttpGateway implements AsyncDisposable {
  readonly #server: Server
  #hub: { readonly host: string; readonly port: number }
  readonly #sockets = new Set<Socket>()
  readonly #realtime = new Set<Duplex>()
  readonly #below: string
  #rules: Rule[] = []

  private constructor(port: number, below: string) {
    this.#below = below
    this.#hub = { host: '127.0.0.1', port }
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true }, (request, response) =>
      this.#serve(request, response),
    )
    this.#server.on('connection', (socket) => {
      socket.on('error', () => undefined)
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
  }

  /** Starts a gateway in front of the hub on this port. `below` is the path prefix of the hub. */
  static async to(port: number, below = ''): Promise<HttpGateway> {
    const gateway = new HttpGateway(port, below)
    await new Promise<void>((resolve) => gateway.#server.listen(0, '127.0.0.1', resolve))
    return gateway
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Forwards new requests to a different hub. Keeps open connections. */
  moveTo(port: number): void {
    this.#hub = { ...this.#hub, port }
  }

  /** Adds a rule. The first rule with a verdict applies. Returns a function that removes the rule. */
  rule(rule: Rule): () => void {
    this.#rules.push(rule)
    return () => {
      this.#rules = this.#rules.filter((one) => one !== rule)
    }
  }

  heal(): void {
    this.#rules = []
  }

  /** Sends a raw string over each WebSocket, as if it came from the hub. */
  sendText(text: string): void {
    const payload = Buffer.from(text)
    const head = Buffer.alloc(10)
    head.writeUInt8(0x81)
    head.writeUInt8(127, 1)
    head.writeBigUInt64BE(BigInt(payload.length), 2)
    for (const socket of this.#realtime) socket.write(Buffer.concat([head, payload]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #verdict({ method = '', url = '', headers }: IncomingMessage, upgrade: boolean): Verdict | undefined {
    for (const rule of this.#rules) {
      const verdict = rule({ method, path: url, headers, upgrade })
      if (verdict !== undefined) return verdict
    }
    return url.startsWith(this.#below) ? undefined : { status: 404, headers: {}, text: '' }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => undefined)
    const verdict = this.#verdict(request, false)
    if (verdict === 'cut') cut(request)
    else if (verdict !== undefined && 'status' in verdict) {
      // Read the upload first, because the client might not read the answer until it has sent everything.
      request.resume().once('end', () => reply(response, verdict))
    } else this.#forward(request, response, verdict?.change)
  }

  #forward(request: IncomingMessage, response: ServerResponse, change?: Change): void {
    const { method, url = '/', headers } = request
    const path = url.slice(this.#below.length)
    const onward = requestHttp({ ...this.#hub, method, path, headers, agent: false })
    onward.once('error', () => cut(request))
    onward.once('response', (answer) => {
      answer.once('error', () => cut(request))
      if (change !== undefined) return void changed(answer, change).then((done) => finish(request, response, done))
      const { connection: _, 'keep-alive': _too, ...headers } = answer.headers
      response.writeHead(answer.statusCode ?? 502, headers)
      // Send the header immediately, so that a body in small pieces stays in pieces.
      response.flushHeaders()
      answer.pipe(response)
      answer.once('aborted', () => cut(request))
    })
    response.once('close', () => onward.destroy())
    request.once('error', () => onward.destroy())
    request.pipe(onward)
  }

  #upgrade(request: IncomingMessage, client: Duplex, head: Buffer): void {
    const verdict = this.#verdict(request, true)
    if (verdict !== undefined) {
      if (typeof verdict === 'object' && 'status' in verdict)
        client.end(
          `HTTP/1.1 ${verdict.status} No\r\ncontent-length: ${Buffer.byteLength(verdict.text)}\r\n\r\n${verdict.text}`,
        )
      else client.destroy()
      return
    }
    const { method = 'GET', url = '/', rawHeaders } = request
    const onward = connect({ ...this.#hub, noDelay: true })
    const lines = [`${method} ${url.slice(this.#below.length)} HTTP/1.1`]
    for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
    onward.write(`${lines.join('\r\n')}\r\n\r\n`)
    onward.write(head)
    this.#realtime.add(client)
    client.once('close', () => this.#realtime.delete(client))
    for (const [one, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      one.on('error', () => undefined)
      one.once('close', () => other.destroy())
      one.pipe(other)
    }
  }
}

function cut(request: IncomingMessage): void {
  request.socket.resetAndDestroy()
}

function reply(response: ServerResponse, { status, headers, text }: Reply): void {
  if (response.destroyed) return
  response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(text)) })
  response.end(text)
}

async function changed(answer: IncomingMessage, change: Change): Promise<Reply | 'cut'> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of answer) chunks.push(Buffer.from(chunk))
  } catch {
    return 'cut'
  }
  const { connection: _, 'transfer-encoding': _too, 'content-length': _three, ...remaining } = answer.headers
  const headers = Object.fromEntries(Object.entries(remaining).map(([name, value]) => [name, String(value)]))
  return change({ status: answer.statusCode ?? 502, headers, text: Buffer.concat(chunks).toString() })
}

function finish(request: IncomingMessage, response: ServerResponse, done: Reply | 'cut'): void {
  if (done === 'cut') cut(request)
  else reply(response, done)
}
