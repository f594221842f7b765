/** Sends operations to the identified hub, and decodes the results. */
import { type Clock, sleep } from '../base/clock.ts'
import { holdsTooMany, type Json, MAX_VALUES } from '../base/json.ts'
import { type Answer, header, isHubs, isPage, isSuccess, parse, textOf } from './answer.ts'
import { asItIs, type Clean, decodeJson } from './decode.ts'
import { type Endpoint, pathOf } from './endpoints.ts'
import { HubError } from './errors.ts'
import type { RestOptions, Sending } from './http-client.ts'
import { OPERATIONS, type Operation, type OperationName, type Parameters, type Result } from './operations.ts'
import { type ApiPrefix, type HubCall, ProvenHub } from './proven-hub.ts'
import { type RefusedCall, refusal, STAND_IN } from './refusal.ts'
import { checkResponse, effectOf, effectOfEndpoint, type WriteEffect } from './written.ts'

export interface HubClientOptions extends RestOptions {
  /** `auto` finds the prefix that the hub supports. */
  readonly pathPrefix: ApiPrefix | 'auto'
  readonly onCall?: (call: HubCall) => void
  /** Removes the API key from strings that the hub sends. */
  readonly clean?: Clean | undefined
  /** Returns whether an app is known to exist, which determines the meaning of a 404. */
  readonly hasApp: (appId: string) => boolean
}

export class HubClient {
  readonly hub: ProvenHub
  readonly #options: HubClientOptions
  readonly #clock: Clock

  constructor(options: HubClientOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.hub = new ProvenHub(options, clock)
  }

  /** @param mayLeave called just before the request is sent; if it throws, nothing is sent. @throws HubError */
  call<N extends OperationName>(name: N, parameters: Parameters<N>, mayLeave?: () => void): Promise<Result<N>> {
    return this.hub.observed(name, this.#call(name, parameters, mayLeave, false))
  }

  /** Reads data to verify a result; accepts only the hub's own response. @throws HubError */
  readVerified<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.hub.observed(name, this.#call(name, parameters, undefined, true))
  }

  async #call<N extends OperationName>(
    name: N,
    parameters: Parameters<N>,
    mayLeave: Sending['mayLeave'],
    isVerified: boolean,
  ): Promise<Result<N>> {
    const operation: Operation<Parameters<N>, Result<N>> = OPERATIONS[name]
    const { clean = asItIs } = this.#options
    const refused = () => this.#refusal({ name, operation: OPERATIONS[name], parameters }, answer)
    let answer = await this.#request(operation, operation.path, parameters, mayLeave)
    const { status } = answer
    if (operation.otherPath !== undefined && (status === 404 || (status === 500 && refused().code === 'unsupported'))) {
      answer = await this.#request(operation, operation.otherPath, parameters, mayLeave)
    }
    if (operation.method !== 'GET') {
      const effect = effectOf(name, parameters, operation.body?.(parameters))
      return operation.decode(this.#judge(answer, effect, refused), parameters, clean)
    }
    if (isVerified && !isHubs(answer, this.hub.signs)) {
      this.hub.distrust()
      throw new HubError('nonsense', 'Another server answered in place of the hub.')
    }
    this.#checkRead(answer, refused)
    if (name === 'getApps') {
      this.hub.listSigned = header(answer, 'x-homey-id') !== null
      this.hub.signsLists ||= this.hub.listSigned
    }
    try {
      return await operation.decode(operation.asText ? textOf(answer) : json(answer), parameters, clean)
    } catch (error) {
      this.hub.distrust()
      throw error
    }
  }

  #request<I extends object>(
    { manager, method, query, body, maxBytes }: Operation<I, unknown>,
    template: string,
    input: I,
    mayLeave: Sending['mayLeave'],
  ): Promise<Answer> {
    const search = query === undefined ? '' : new URLSearchParams(query(input)).toString()
    const path = template.replace(/:(\w+)/g, (_, name: string) => encodeSegment(Reflect.get(input, name)))
    const whole = `/api/${this.hub.prefix}/${manager}${path}${search === '' ? '' : `?${search}`}`
    const text = body === undefined ? undefined : JSON.stringify(body(input))
    return this.hub.request(method, whole, { body: text, maxBytes, mayLeave })
  }

  /** Calls an endpoint. Returns a string if an app's response is not JSON. @throws HubError */
  callEndpoint(endpoint: Endpoint, mayLeave?: () => void): Promise<Json> {
    return this.hub.observed('callEndpoint', this.#callEndpoint(endpoint, mayLeave))
  }

  async #callEndpoint(endpoint: Endpoint, mayLeave: Sending['mayLeave']): Promise<Json> {
    const { section, method, body } = endpoint
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sending = { body: text, maxBytes: MAX_ENDPOINT_BYTES, mayLeave }
    const answer = await this.hub.request(method, pathOf(endpoint, this.hub.prefix), sending)
    const refused = () => this.#refusal(refusedEndpoint(endpoint), answer)
    if (method !== 'GET') return this.#judge(answer, section === 'app' ? null : effectOfEndpoint(endpoint), refused)
    this.#checkRead(answer, refused)
    try {
      return decodeJson(section === 'app' ? jsonOrText(answer) : json(answer))
    } catch (error) {
      if (section === 'manager') this.hub.distrust()
      throw error
    }
  }

  /**
   * Reads a public file such as an icon; `undefined` if the status is not 200 or the path is not on the hub.
   * @throws HubError
   */
  async file(path: string, maxBytes: number): Promise<Buffer | undefined> {
    if (!isPath(path)) return undefined
    const answer = await this.hub.read(path, maxBytes)
    return answer.status === 200 ? answer.body : undefined
  }

  /** Sends a GET request to an app's own web API, and returns the HTTP status. @throws HubError */
  async requestApp(id: string, path: string): Promise<number> {
    // The hub's official client library uses the same paths for the web APIs of apps.
    const whole = `/api/app/${encodeSegment(id)}${path}`
    if (!path.startsWith('/') || !isPath(whole)) throw new HubError('invalid_argument', 'Expected a path.')
    return (await this.hub.request('GET', whole, { once: true })).status
  }

  /** Rejects pending calls with `unreachable` or `no_answer`; safe to call twice. */
  close(): Promise<void> {
    return this.hub.close()
  }

  #checkRead(answer: Answer, refused: () => HubError): void {
    const { status } = answer
    if (!isSuccess('GET', status)) throw refused()
    if (!this.hub.signsLists || header(answer, 'x-homey-id') !== null) return
    this.hub.distrust()
    throw new HubError('failed', `${STAND_IN} ${status}.`, { status, foreign: true })
  }

  #judge(answer: Answer, effect: WriteEffect | null, refused: () => HubError): Json {
    try {
      return checkResponse(answer, effect, isHubs(answer, this.hub.signs, effect === null), refused)
    } catch (error) {
      const code = error instanceof HubError ? error.code : undefined
      if (code === 'no_answer' || code === 'nonsense') this.hub.distrust()
      throw error
    }
  }

  #refusal(call: RefusedCall, answer: Answer): HubError {
    const { hasApp, clean } = this.#options
    return refusal(call, answer, { hasApp, signs: this.hub.signsLists, now: this.#clock.now(), clean })
  }
}

const MAX_ENDPOINT_BYTES = 1024 * 1024

/** Describes a refused call. A call to a known operation has the same errors as that operation. */
function refusedEndpoint({ operation, parameters, section, item, method, path }: Endpoint): RefusedCall {
  if (operation !== null) return { name: operation, operation: OPERATIONS[operation], parameters }
  const ofApp = section === 'app' ? { id: item } : {}
  return {
    name: `such endpoint of ${item} (${method})`,
    operation: { method, path, optional: true },
    parameters: ofApp,
  }
}

/** Parses an app's response. An app may respond with anything, but HTML comes from another server. */
function jsonOrText(answer: Answer): Json {
  if (answer.body.length === 0) return null
  if (isPage(answer)) throw new HubError('nonsense', 'Got an HTML page.', { status: answer.status, foreign: true })
  const value = parse(answer)
  return value === undefined ? textOf(answer) : value
}

const MAX_PATH = 512

/** Returns whether a string is a path on the hub itself, in normalised form. */
function isPath(text: string): boolean {
  const base = 'http://hub.invalid'
  if (!text.startsWith('/') || text.length > MAX_PATH || !URL.canParse(text, base)) return false
  const url = new URL(text, base)
  return url.origin === base && url.pathname + url.search === text
}

function encodeSegment(value: unknown): string {
  // Reject dot segments, because the server would resolve them, and the path would name a different resource.
  if (typeof value === 'string' && value !== '' && value !== '.' && value !== '..' && value.isWellFormed()) {
    return encodeURIComponent(value)
  }
  throw new HubError('invalid_argument', 'An id or name must not be empty, a dot segment or invalid Unicode.')
}

/** Accepts only JSON or an empty body, because the hub's own API sends nothing else. @throws HubError */
function json(answer: Answer): Json {
  const { status, body } = answer
  if (body.length === 0) return null
  const value = parse(answer)
  if (value !== undefined) return value
  const what = holdsTooMany(textOf(answer)) ? `more than ${MAX_VALUES} values` : 'something that is not JSON'
  throw new HubError('nonsense', `The hub answered with ${what}.`, { status })
}

const PAUSES_MS = [1000, 2000, 4000]
/** The last request is sent this long before the deadline. */
const MARGIN_MS = 100

interface RateLimitRetry {
  readonly clock: Clock
  /** No request is sent after this time, in `clock.elapsed()` milliseconds. */
  readonly deadline: number
  readonly signal: AbortSignal
  readonly check: () => void
}

/**
 * Repeats a rate-limited request (429) until the deadline. This is safe, because the hub did not carry out the request.
 * @throws HubError `rate_limited` if the hub asks to wait until after the deadline
 */
export async function retryRateLimited<T>(request: () => Promise<T>, retry: RateLimitRetry): Promise<T> {
  const { clock, deadline, signal, check } = retry
  for (let tries = 0; ; tries += 1) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'rate_limited') throw error
      const left = deadline - clock.elapsed()
      const scheduled = Math.min(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0, left - MARGIN_MS)
      const pause = Math.max(error.retryAfterMs ?? 0, PAUSES_MS[0] ?? 0, scheduled)
      if (pause >= left) throw error
      await sleep(clock, pause, signal)
      if (signal.aborted) throw error
      check()
    }
  }
}
