/** The typed client: `call(operation, parameters)` over REST, each outcome decoded or one HubError. */
import type { Clock } from '../base/clock.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import { OPERATIONS, type Operation, type OperationName, type Parameters, type Result } from './operations.ts'
import { refusal } from './refusal.ts'
import { type Answer, header, Rest, type RestOptions } from './rest.ts'

export const API_PREFIXES = ['manager', 'managers'] as const
/** The two ways in which hubs spell their API's root: `/api/manager/…` and `/api/managers/…`. */
export type ApiPrefix = (typeof API_PREFIXES)[number]

/** Who answers at the hub's address. */
export interface Identity {
  readonly id: string | null
  readonly firmware: string | null
  readonly api: ApiPrefix
}

export interface HubClientOptions extends RestOptions {
  /** `auto` asks the hub which one it answers. */
  readonly pathPrefix: ApiPrefix | 'auto'
  /** Whether an app is known to exist: decides what a 404 means. */
  readonly knows: (appId: string) => boolean
  readonly onCall?: (call: HubCall) => void
}

/** A call that has ended, for those who count. */
export interface HubCall {
  readonly operation: OperationName
  readonly outcome: 'ok' | HubErrorCode
  readonly ms: number
}

export class HubClient {
  readonly #options: HubClientOptions
  readonly #clock: Clock
  readonly #rest: Rest
  #prefix: ApiPrefix

  constructor(options: HubClientOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#rest = new Rest(options, clock)
    this.#prefix = options.pathPrefix === 'auto' ? 'manager' : options.pathPrefix
  }

  /** Asks who is there and which path prefix it answers; later calls use that prefix. */
  identify(): Promise<Identity> {
    return this.#observed('ping', this.#identify())
  }

  async #identify(): Promise<Identity> {
    const { pathPrefix } = this.#options
    const candidates = pathPrefix === 'auto' ? API_PREFIXES : [pathPrefix]
    for (const prefix of candidates) {
      const answer = await this.#rest.request('GET', `/api/${prefix}/system/ping`)
      if (answer.status === 200) {
        this.#prefix = prefix
        return { id: header(answer, 'x-homey-id'), firmware: header(answer, 'x-homey-version'), api: prefix }
      }
      // Only "no such path" says that it is the other one; any other failure would be the same there.
      if (answer.status !== 404) throw this.#refusal('ping', {}, answer)
    }
    throw new HubError('unsupported', 'The hub answers no known API path.', { status: 404 })
  }

  /** Runs one operation. @throws HubError */
  call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.#observed(name, this.#call(name, parameters))
  }

  async #call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    const operation = OPERATIONS[name]
    let answer = await this.#send(operation, operation.path, parameters)
    if (answer.status === 404 && operation.otherPath !== undefined) {
      answer = await this.#send(operation, operation.otherPath, parameters)
    }
    if (answer.status < 200 || answer.status > 299) throw this.#refusal(name, parameters, answer)
    return operation.decode(json(answer))
  }

  /** Reports how a call ended and how long it took. */
  async #observed<T>(operation: OperationName, call: Promise<T>): Promise<T> {
    const started = this.#clock.elapsed()
    let outcome: HubCall['outcome'] = 'ok'
    try {
      return await call
    } catch (error) {
      outcome = error instanceof HubError ? error.code : 'failed'
      throw error
    } finally {
      this.#options.onCall?.({ operation, outcome, ms: this.#clock.elapsed() - started })
    }
  }

  /** Ends calls under way as `unreachable` or `no_answer`; safe to call twice. */
  close(): Promise<void> {
    return this.#rest.close()
  }

  #send<I extends object>(operation: Operation<I, unknown>, template: string, input: I): Promise<Answer> {
    const { manager, method, query, body } = operation
    const search = query === undefined ? '' : new URLSearchParams(query(input)).toString()
    const path = `/api/${this.#prefix}/${manager}${fill(template, input)}${search === '' ? '' : `?${search}`}`
    const sent = body === undefined ? undefined : JSON.stringify(body(input))
    const request = () => this.#rest.request(method, path, sent)
    return method === 'GET' ? this.#repeatIfCutOff(request) : request()
  }

  /**
   * Reads only. The hub closes idle connections, and a request that meets such an end gets no answer. That shows well
   * before the deadline, and the read is sent once more. A write may have been carried out, so it never is.
   */
  async #repeatIfCutOff(read: () => Promise<Answer>): Promise<Answer> {
    const started = this.#clock.elapsed()
    try {
      return await read()
    } catch (error) {
      const early = this.#clock.elapsed() - started < this.#options.timeoutMs / 2
      if (early && error instanceof HubError && error.code === 'no_answer') return read()
      throw error
    }
  }

  #refusal(name: OperationName, parameters: object, answer: Answer): HubError {
    const call = { name, operation: OPERATIONS[name], parameters }
    return refusal(call, answer, { knows: this.#options.knows, now: this.#clock.now() })
  }
}

/** Fills the `:parameters` of a path template, percent-encoded. */
function fill(template: string, parameters: object): string {
  return template.replace(/:(\w+)/g, (_, name: string) => encodeSegment(Reflect.get(parameters, name)))
}

function encodeSegment(value: unknown): string {
  // A dot segment would be resolved away and name another resource.
  if (typeof value === 'string' && value !== '' && value !== '.' && value !== '..' && value.isWellFormed()) {
    return encodeURIComponent(value)
  }
  throw new HubError('invalid_argument', 'An id or name that is empty, a dot segment or not Unicode names nothing.')
}

/** A body that is empty or JSON; anything else is not this API speaking. */
function json({ status, body }: Answer): unknown {
  if (body.length === 0) return null
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new HubError('nonsense', 'The hub answered with something that is not JSON.', { status, cause })
  }
}
