/** One HTTP request to the hub: a deadline, a bounded body, no redirects, no retries, and one error type. */
import { type Dispatcher, Pool } from 'undici'
import type { Clock } from '../base/clock.ts'
import { systemCode } from '../base/failures.ts'
import { withoutSlashes } from '../base/text.ts'
import type { Answer } from './answer.ts'
import { HubError } from './errors.ts'
import type { Method } from './operations.ts'

const MAX_RESPONSE_BYTES = 5 * 1024 * 1024

export interface RestOptions {
  /** Base URL of the hub; its path precedes `/api`. */
  readonly url: string
  /** Called before each request, so that a rotated key takes effect at once. */
  readonly apiKey: () => string
  /** Time limit of a call in milliseconds, from waiting for a connection to the last byte. */
  readonly timeoutMs: number
  /** Maximum number of concurrent requests. */
  readonly maxRequests: number
  /** Called right before each request; if it throws, the request is not sent, and the call fails. */
  readonly mayAsk?: (() => void) | undefined
  /** Called when the last connection has closed: the next one may lead to another server. */
  readonly onDisconnected?: (() => void) | undefined
}

/** The options of a request other than its path. */
export interface Sending {
  readonly body?: string | undefined
  /** Maximum size of the response in bytes; default: far above the list of a hub with 2,000 apps. */
  readonly maxBytes?: number | undefined
  /** Whether to send the API key. */
  readonly key: boolean
  /** Called once connected, just before the request is sent; if it throws, the request is not sent. */
  readonly mayLeave?: (() => void) | undefined
}

export class HttpClient {
  readonly #options: RestOptions
  readonly #clock: Clock
  readonly #origin: string
  readonly #prefix: string
  /** Exists only while there are connections or requests, because most of a thousand hubs are idle. */
  #pool: Pool | undefined
  #closed = false

  constructor(options: RestOptions, clock: Clock) {
    const { origin, pathname } = new URL(options.url)
    this.#options = options
    this.#clock = clock
    this.#prefix = withoutSlashes(pathname)
    this.#origin = origin
  }

  #connections(): Pool {
    if (this.#pool !== undefined) return this.#pool
    const { maxRequests, timeoutMs } = this.#options
    const pool = new Pool(this.#origin, {
      connections: maxRequests,
      pipelining: 1,
      // The hub closes idle connections early, and a write sent on a closing connection has an unknown outcome.
      keepAliveTimeout: 1000,
      keepAliveMaxTimeout: 1000,
      allowH2: false,
      connect: { timeout: timeoutMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    pool.on('disconnect', () => this.#onDisconnect(pool))
    this.#pool = pool
    return pool
  }

  #onDisconnect(pool: Pool): void {
    const { connected, size } = pool.stats
    if (connected > 0) return
    this.#options.onDisconnected?.()
    if (size > 0 || this.#closed || pool !== this.#pool) return
    this.#pool = undefined
    void pool.destroy()
  }

  /**
   * Sends a request to `path` on the hub. Rejects with HubError `unreachable`, `no_answer` or `nonsense`, or with what
   * `mayLeave` throws; never because of the status.
   */
  request(method: Method, path: string, { key, body, mayLeave, maxBytes }: Sending): Promise<Answer> {
    const { apiKey, mayAsk, timeoutMs } = this.#options
    const headers: Record<string, string> = key ? { authorization: `Bearer ${apiKey()}` } : {}
    if (body !== undefined) headers['content-type'] = 'application/json'
    const exchange = new Exchange(maxBytes ?? MAX_RESPONSE_BYTES, method !== 'GET', [mayAsk, mayLeave])
    const cancel = this.#clock.after(timeoutMs, () => exchange.timeOut(timeoutMs))
    this.#connections().dispatch({ method, path: this.#prefix + path, headers, body: body ?? null }, exchange)
    return exchange.answer.finally(cancel)
  }

  /** Aborts running requests; safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#connections().destroy()
  }
}

/**
 * One request, which knows whether it was sent. undici calls `onRequestStart` just before it writes to an open
 * connection: a failure before that cannot have reached the hub, a later one may have.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<Answer>()
  readonly answer = this.#answer.promise
  readonly #maxBytes: number
  /** Whether to drop the body of a response that is too large; otherwise the request fails. */
  readonly #cuts: boolean
  readonly #guards: readonly Sending['mayLeave'][]
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #status = 0
  #headers: Answer['headers'] = {}
  #chunks: Buffer[] = []
  #size = 0

  /** @param guards called just before the request is sent; if one throws, the request is not sent */
  constructor(maxBytes: number, cuts: boolean, guards: readonly Sending['mayLeave'][]) {
    this.#maxBytes = maxBytes
    this.#cuts = cuts
    this.#guards = guards
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The request timed out while waiting for a connection, and the caller knows that it was not sent.
    if (this.#settled) {
      controller.abort(new Error('too late to be sent'))
      return
    }
    this.#controller = controller
    try {
      for (const guard of this.#guards) guard?.()
    } catch (error) {
      this.#fail(error)
    }
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Answer['headers']): void {
    this.#status = status
    this.#headers = headers
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= this.#maxBytes) this.#chunks.push(chunk)
    else if (this.#cuts) this.#cut()
    else this.#fail(new HubError('nonsense', `The hub's answer is larger than ${this.#maxBytes} bytes.`))
  }

  onResponseEnd(): void {
    if (this.#settled) return
    this.#settled = true
    const [first, ...rest] = this.#chunks
    const body = first !== undefined && rest.length === 0 ? first : Buffer.concat(this.#chunks)
    this.#answer.resolve({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(_: Dispatcher.DispatchController, cause: Error): void {
    this.#lose(
      `The hub cannot be reached${reason(cause)}`,
      `The hub broke off without an answer${reason(cause)}`,
      cause,
    )
  }

  timeOut(ms: number): void {
    this.#lose(`No connection to the hub within ${ms / 1000} s`, `No answer from the hub within ${ms / 1000} s`)
  }

  #lose(unsent: string, sent: string, cause?: Error): void {
    if (this.#controller === undefined) this.#fail(new HubError('unreachable', `${unsent}.`, { cause }))
    else this.#fail(new HubError('no_answer', `${sent}.`, { cause }))
  }

  #fail(error: unknown): void {
    if (this.#settled) return
    this.#settled = true
    this.#answer.reject(error)
    this.#controller?.abort(error instanceof Error ? error : new Error('given up'))
  }

  /** The head of the response is enough to know whether a write was done. */
  #cut(): void {
    if (this.#settled) return
    this.#settled = true
    this.#answer.resolve({ status: this.#status, headers: this.#headers, body: Buffer.alloc(0), isCut: true })
    this.#controller?.abort(new Error('too large'))
  }
}

/** The code of a network error, such as `ECONNREFUSED`, which is enough for a log or an answer. */
function reason(cause: unknown): string {
  const code = systemCode(cause)
  return code === '' ? '' : ` (${code})`
}
