/** One HTTP request to the hub: a deadline, a bounded body, no redirect, no retry, and one typed error. */
import { type Dispatcher, Pool } from 'undici'
import type { Clock } from '../base/clock.ts'
import { systemCode } from '../base/failures.ts'
import { withoutSlashes } from '../base/text.ts'
import type { Answer } from './answer.ts'
import { HubError } from './errors.ts'
import type { Method } from './operations.ts'

const MAX_RESPONSE_BYTES = 5 * 1024 * 1024

export interface RestOptions {
  /** Base URL of the hub; a path in it is kept in front of `/api`. */
  readonly url: string
  /** Asked before each request, so that a rotated key is used at once. */
  readonly apiKey: () => string
  /** Deadline of a call in milliseconds, waiting for a connection and the last byte included. */
  readonly timeoutMs: number
  /** Requests under way at once. */
  readonly maxRequests: number
  /** Called right before each request. If it throws, the request is not sent and the call fails. */
  readonly mayAsk?: (() => void) | undefined
  /** The last connection has ended: the next one may lead to something else. */
  readonly onDisconnected?: (() => void) | undefined
}

/** What a request may have apart from its path. */
export interface Sending {
  readonly body?: string | undefined
  /** Largest answer in bytes; default: far above the list of a hub with 2,000 apps. */
  readonly maxBytes?: number | undefined
  /** Whether to show the API key. */
  readonly key: boolean
  /** Called when a connection is there, right before the request goes out; what it throws ends the request unsent. */
  readonly mayLeave?: (() => void) | undefined
}

export class HttpClient {
  readonly #options: RestOptions
  readonly #clock: Clock
  readonly #origin: string
  readonly #prefix: string
  /** Only while it has connections or requests: with a thousand hubs, nearly all of them are idle. */
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
      // The hub closes idle connections early, and a write sent into a closing one has an unknown outcome.
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
   * `path` is on the hub. Rejects with a HubError `unreachable`, `no_answer` or `nonsense`, or with what `mayLeave`
   * throws; never by status.
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

  /** Ends what is under way; safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#connections().destroy()
  }
}

/**
 * One request, which knows whether it was sent. undici calls `onRequestStart` right before it writes to a live
 * connection: what fails before that has surely not reached the hub, what fails later may have.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<Answer>()
  readonly answer = this.#answer.promise
  readonly #maxBytes: number
  /** Whether a longer answer loses its body; otherwise it is an error. */
  readonly #cuts: boolean
  readonly #guards: readonly Sending['mayLeave'][]
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #status = 0
  #headers: Answer['headers'] = {}
  #chunks: Buffer[] = []
  #size = 0

  /** @param guards called right before the request goes out; what one throws ends it unsent */
  constructor(maxBytes: number, cuts: boolean, guards: readonly Sending['mayLeave'][]) {
    this.#maxBytes = maxBytes
    this.#cuts = cuts
    this.#guards = guards
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Its deadline passed while it waited for a connection, and the caller knows that it was not sent.
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
    this.#lose(`No connection to the hub within ${ms} ms`, `No answer from the hub within ${ms} ms`)
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

  /** What answers a write says by its head whether it was done. */
  #cut(): void {
    if (this.#settled) return
    this.#settled = true
    this.#answer.resolve({ status: this.#status, headers: this.#headers, body: Buffer.alloc(0), isCut: true })
    this.#controller?.abort(new Error('too large'))
  }
}

/** The system's short code (`ECONNREFUSED`), which is all that a log or an answer needs of a network error. */
function reason(cause: unknown): string {
  const code = systemCode(cause)
  return code === '' ? '' : ` (${code})`
}
