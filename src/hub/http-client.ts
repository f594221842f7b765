/** Sends HTTP requests to the hub, with a deadline, a bounded body, no redirects, and no retries. */
import { type Dispatcher, Pool } from 'undici'
import type { Clock } from '../base/clock.ts'
import { systemCode } from '../base/failures.ts'
import { withoutSlashes } from '../base/text.ts'
import type { Answer } from './answer.ts'
import { HubError } from './errors.ts'
import type { Method } from './operations.ts'

const MAX_RESPONSE_BYTES = 5 * 1024 * 1024
/** The reason for closing connections without requests. Created once, because stack traces of 1,000 hubs take time. */
const UNUSED = new Error('no longer used')

export interface RestOptions {
  /** Base URL of the hub; its path precedes `/api`. */
  readonly url: string
  /** Returns the API key. Called before each request, so that a changed key takes effect immediately. */
  readonly apiKey: () => string
  /** Time limit from waiting for a connection to the last byte of the response, in milliseconds. */
  readonly timeoutMs: number
  readonly maxRequests: number
  /** Called just before each request; if it throws, the request is not sent, and the call fails. */
  readonly beforeRequest?: (() => void) | undefined
  /** Called when a connection was lost, or no open connection is left. A new connection may lead to another server. */
  readonly onDisconnected?: ((isLost: boolean) => void) | undefined
}

export interface Sending {
  readonly body?: string | undefined
  /** Maximum size of the response in bytes; default: 5 MiB, much more than the list of a hub with 2,000 apps needs. */
  readonly maxBytes?: number | undefined
  /** The time limit of this request, in milliseconds; default: that of the client. */
  readonly timeoutMs?: number | undefined
  /** Whether to send the API key. */
  readonly key: boolean
  /** Whether to open a new connection, because the server of an open connection may no longer have this address. */
  readonly isFresh?: boolean | undefined
  /** Called just before the request is sent; if it throws, the request is not sent. */
  readonly mayLeave?: (() => void) | undefined
}

export class HttpClient {
  readonly #options: RestOptions
  readonly #clock: Clock
  readonly #origin: string
  readonly #prefix: string
  /** Exists only while it has connections or requests, to save memory, because a bridge may have many idle hubs. */
  #pool: Pool | undefined
  /** Pools that each serve a single request. */
  readonly #fresh = new Set<Pool>()
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
    const pool = this.#open(this.#options.maxRequests)
    pool.on('disconnect', (_origin, _targets, error) => this.#onDisconnect(pool, error))
    this.#pool = pool
    return pool
  }

  #open(connections: number): Pool {
    return new Pool(this.#origin, {
      connections,
      pipelining: 1,
      // Close idle connections before the hub does, because the outcome of a write on a closing connection is unknown.
      keepAliveTimeout: 1000,
      keepAliveMaxTimeout: 1000,
      allowH2: false,
      connect: { timeout: this.#options.timeoutMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  #onDisconnect(pool: Pool, error: Error): void {
    const { connected, size } = pool.stats
    // undici uses `UND_ERR_INFO` for connections that it closed itself, for example because they were idle.
    const isLost = systemCode(error) !== 'UND_ERR_INFO'
    if (isLost || connected === 0) this.#options.onDisconnected?.(isLost)
    if (connected > 0 || size > 0 || this.#closed || pool !== this.#pool) return
    this.#pool = undefined
    void pool.destroy(UNUSED)
  }

  /**
   * Resolves for every status. @throws HubError `unreachable`, `no_answer` or `nonsense`, or the error of `mayLeave`
   */
  request(method: Method, path: string, sending: Sending): Promise<Answer> {
    const { apiKey, beforeRequest } = this.#options
    const { key, isFresh, body, mayLeave, maxBytes, timeoutMs = this.#options.timeoutMs } = sending
    // Without this header, a server may compress its answers.
    const headers: Record<string, string> = { 'accept-encoding': 'identity' }
    if (key) headers['authorization'] = `Bearer ${apiKey()}`
    if (body !== undefined) headers['content-type'] = 'application/json'
    const limit = maxBytes ?? MAX_RESPONSE_BYTES
    const { answer, handler, timeOut } = exchange(limit, method !== 'GET', [beforeRequest, mayLeave])
    const cancel = this.#clock.after(timeoutMs, () => timeOut(timeoutMs))
    const request = { method, path: this.#prefix + path, headers, body: body ?? null }
    if (!isFresh || this.#closed) {
      this.#connections().dispatch(request, handler)
      return answer.finally(cancel)
    }
    const fresh = this.#open(1)
    this.#fresh.add(fresh)
    fresh.dispatch(request, handler)
    return answer.finally(() => {
      cancel()
      this.#fresh.delete(fresh)
      void fresh.destroy(UNUSED)
    })
  }

  /** Aborts running requests; safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([this.#connections(), ...this.#fresh].map((pool) => pool.destroy()))
  }
}

/**
 * Creates the handler of one request, which records whether it was sent. undici calls `onRequestStart` just before it
 * writes to an open connection. A request that fails earlier cannot have reached the hub; a request that fails later
 * may have reached it.
 * @param cuts whether to drop the body of a response that is too large; otherwise the request fails
 */
function exchange(maxBytes: number, cuts: boolean, guards: readonly Sending['mayLeave'][]) {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer>()
  let controller: Dispatcher.DispatchController | undefined
  let isSettled = false
  let status = 0
  let headers: Answer['headers'] = {}
  const chunks: Buffer[] = []
  let size = 0

  function lose(unsent: string, sent: string, cause?: Error): void {
    if (controller === undefined) fail(new HubError('unreachable', `${unsent}.`, { cause }))
    else fail(new HubError('no_answer', `${sent}.`, { cause }))
  }

  function fail(error: unknown): void {
    if (isSettled) return
    isSettled = true
    reject(error)
    controller?.abort(error instanceof Error ? error : new Error('given up'))
  }

  /** Drops the body. The status and headers are enough to show whether a write was done. */
  function cut(): void {
    if (isSettled) return
    isSettled = true
    resolve({ status, headers, body: Buffer.alloc(0), isCut: true })
    controller?.abort(new Error('too large'))
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      // The request timed out while waiting for a connection, and the caller has been notified.
      if (isSettled) return void started.abort(new Error('too late to be sent'))
      controller = started
      try {
        for (const guard of guards) guard?.()
      } catch (error) {
        fail(error)
      }
    },

    onResponseStart(_, code, fields) {
      status = code
      headers = fields
    },

    onResponseData(_, chunk) {
      size += chunk.length
      if (size <= maxBytes) chunks.push(chunk)
      else if (cuts) cut()
      else fail(new HubError('nonsense', `The hub's answer is larger than ${maxBytes} bytes.`))
    },

    onResponseEnd() {
      if (isSettled) return
      isSettled = true
      resolve({ status, headers, body: Buffer.concat(chunks) })
    },

    onResponseError(_, cause) {
      lose(`The hub cannot be reached${reason(cause)}`, `The hub broke off without an answer${reason(cause)}`, cause)
    },
  }

  const timeOut = (ms: number) =>
    lose(`No connection to the hub within ${ms / 1000} s`, `No answer from the hub within ${ms / 1000} s`)
  return { answer, handler, timeOut }
}

/** Returns an error code such as `ECONNREFUSED` in parentheses, or an empty string. */
function reason(cause: unknown): string {
  const code = systemCode(cause)
  return code === '' ? '' : ` (${code})`
}
