/** The typed client: `call(operation, parameters)` over REST, each outcome decoded or one HubError. */
import type { Clock } from '../base/clock.ts'
import { isRecord } from '../base/json.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import { OPERATIONS, type OperationName, type Parameters, type Result } from './operations.ts'
import { type Answer, Rest, type RestOptions } from './rest.ts'

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

/** A row as the client uses it, whatever its parameters are. */
interface AnyRow {
  readonly manager: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly otherPath?: string
  readonly scope?: string
  readonly optional?: true
  readonly body?: (input: never) => unknown
  readonly query?: (input: never) => Readonly<Record<string, string>>
}

const HUB_TEXT_LENGTH = 200
const MAX_RETRY_AFTER_MS = 5 * 60_000

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

  /**
   * Runs one operation. A read whose kept-alive connection the hub had just closed is sent once more; a write never is.
   * @throws HubError
   */
  call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.#observed(name, this.#call(name, parameters))
  }

  async #call<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    const row: AnyRow = OPERATIONS[name]
    let answer = await this.#send(row, row.path, parameters)
    if (answer.status === 404 && row.otherPath !== undefined) answer = await this.#send(row, row.otherPath, parameters)
    if (answer.status < 200 || answer.status > 299) throw this.#refusal(name, parameters, answer)
    // The row's decoder belongs to the row's result: the table ties both to the name.
    return OPERATIONS[name].decode(json(answer)) as Result<N>
  }

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

  async #send(row: AnyRow, template: string, parameters: object): Promise<Answer> {
    const input = parameters as never
    const query = row.query === undefined ? '' : new URLSearchParams(row.query(input)).toString()
    const path = `/api/${this.#prefix}/${row.manager}${fill(template, parameters)}${query === '' ? '' : `?${query}`}`
    const body = row.body === undefined ? undefined : JSON.stringify(row.body(input))
    const started = this.#clock.elapsed()
    try {
      return await this.#rest.request(row.method, path, body)
    } catch (error) {
      const quick = this.#clock.elapsed() - started < this.#options.timeoutMs / 2
      if (row.method === 'GET' && quick && error instanceof HubError && error.code === 'no_answer') {
        return this.#rest.request(row.method, path, body)
      }
      throw error
    }
  }

  #refusal(name: OperationName, parameters: object, answer: Answer): HubError {
    const row: AnyRow = OPERATIONS[name]
    const { status } = answer
    const says = hubText(answer)
    if (status === 401) return new HubError('unauthorized', 'The hub does not accept the API key.', { status })
    if (status === 403) {
      const lacks = row.scope === undefined ? `forbids ${name}${says}` : `says that the API key lacks ${row.scope}`
      return new HubError('forbidden', `The hub ${lacks}.`, { status, ...(row.scope && { scope: row.scope }) })
    }
    if (status === 404) return this.#notFound(row, name, parameters)
    if (status === 429) {
      const retryAfterMs = retryAfter(answer, this.#clock.now())
      return new HubError('rate_limited', 'The hub asks for fewer requests.', { status, retryAfterMs })
    }
    if (status >= 400 && status < 500) return new HubError('rejected', `The hub refused: ${status}${says}.`, { status })
    if (status >= 500) return new HubError('failed', `The hub failed: ${status}${says}.`, { status })
    return new HubError('nonsense', `The hub answered with status ${status}, which no operation has.`, { status })
  }

  /** 404 says only that something is not there; what, follows from what the path names and what is known. */
  #notFound(row: AnyRow, name: OperationName, parameters: object): HubError {
    const details = { status: 404 }
    const id = 'id' in parameters ? parameters.id : 'appId' in parameters ? parameters.appId : undefined
    const known = typeof id === 'string' && this.#options.knows(id)
    if (typeof id !== 'string' || (known && row.optional)) {
      return new HubError('unsupported', `This hub has no ${name}.`, details)
    }
    if (known && row.path.includes(':name'))
      return new HubError('unknown_setting', 'The app has no such setting.', details)
    return new HubError('unknown_app', 'The hub knows no such app.', details)
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

function header(answer: Answer, name: string): string | null {
  const value = answer.headers[name]
  return typeof value === 'string' && value !== '' ? value.slice(0, HUB_TEXT_LENGTH) : null
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

/** The hub's own words on a failure: hostile text, so short and on one line. */
function hubText(answer: Answer): string {
  let parsed: unknown
  try {
    parsed = JSON.parse(answer.body.toString('utf8'))
  } catch {
    return ''
  }
  if (!isRecord(parsed)) return ''
  const said = parsed['error_description'] ?? parsed['error']
  if (typeof said !== 'string') return ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go.
  return `, ${said.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, HUB_TEXT_LENGTH)}`
}

/** `Retry-After` in milliseconds, seconds or HTTP date (RFC 9110, 10.2.3); at least one second, at most five minutes. */
function retryAfter(answer: Answer, now: number): number {
  const value = header(answer, 'retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 1000), MAX_RETRY_AFTER_MS) : 1000
}
