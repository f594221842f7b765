/** The typed client: `call(operation, parameters)` over REST, each outcome decoded or one HubError. */
import type { Clock } from '../base/clock.ts'
import { holdsTooMany, type Json, MAX_VALUES } from '../base/json.ts'
import { Limiter } from '../base/limiter.ts'
import { type Answer, header, isGreeting, isHubs, isPage, parse, textOf } from './answer.ts'
import { decodeJson } from './decode.ts'
import { type Endpoint, pathOf } from './endpoints.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import { HttpClient, type RestOptions, type Sending } from './http-client.ts'
import {
  type Method,
  OPERATIONS,
  type Operation,
  type OperationName,
  type Parameters,
  type Result,
} from './operations.ts'
import { isSuccess, type RefusedCall, refusal, STAND_IN } from './refusal.ts'
import { asItIs, type Clean } from './text.ts'
import { type Asked, askedBy, askedOf, judgeWritten } from './written.ts'

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
  /** Takes the API key out of the hub's texts; default: they stay as they are. */
  readonly clean?: Clean | undefined
}

/** A call that has ended, for those who count. */
export interface HubCall {
  /** `callEndpoint` for what was named by its path. */
  readonly operation: OperationName | 'callEndpoint'
  readonly outcome: 'ok' | HubErrorCode
  readonly ms: number
}

/** A hub whose connections end as fast as they are made is not asked for ever who it is. */
const MAX_PROOFS = 3

/** What a hub that limits requests takes: from its first complaint on, and for so long after the latest one. */
const SPACED = { slots: 2, apartMs: 150 }
const SPACED_MS = 10 * 60_000

const NO_HUB = 'What answers at the address is no hub.'

/** Nothing was sent, as who is at the other end is not known any more. */
class Unproven extends Error {}

export class HubClient {
  readonly #options: HubClientOptions
  readonly #clock: Clock
  readonly #rest: HttpClient
  readonly #limiter: Limiter
  readonly #closing = new AbortController()
  /** At the end what waits goes on, and fails by itself. */
  readonly #turn = { signal: this.#closing.signal }
  #prefix: ApiPrefix
  /** The hub that calls are for; nobody before the first ping was answered. */
  #identity: Identity | undefined
  #proven = false
  /** Whether the next connection may lead to somebody else. */
  #unsure = false
  #proving: Promise<void> | undefined
  #listSigned = false
  /** Whether the hub has ever shown its identity with a list: what it answers to other reads shows it, too. */
  #signsLists = false
  /**
   * Whether the hub has ever shown its identity with an answer to a request with the key. Pings do not count: a hub may
   * show it there alone.
   */
  #signs = false

  constructor(options: HubClientOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#rest = new HttpClient(options, clock)
    this.#limiter = new Limiter({ clock, slots: Number.POSITIVE_INFINITY })
    this.#prefix = options.pathPrefix === 'auto' ? 'manager' : options.pathPrefix
  }

  /** Whether the hub has shown who it is, and nothing has spoken against it since. */
  get proven(): boolean {
    return this.#proven
  }

  /** Whether the latest list of apps said itself which hub it is of. */
  get listSigned(): boolean {
    return this.#listSigned
  }

  /** The connections to the hub have ended: who is there has to show it before the next one is given the key. */
  doubt(): void {
    this.#unsure = true
  }

  /** What speaks against the address came another way: it has to show again that it is a hub before the next call. */
  distrust(): void {
    this.#proven = false
  }

  /** Before the key goes another way than with a call: asks who is there, unless that is known. @throws HubError */
  async assure(): Promise<void> {
    if (!this.#proven || this.#unsure) await this.#prove()
  }

  /** Asks who is there and which path prefix it answers; later calls are for that hub. @throws HubError */
  async identify(): Promise<Identity> {
    const found = await this.#observed('ping', this.#ping())
    const before = this.#identity
    if (found.id !== null && before?.id !== found.id) {
      this.#signs = false
      this.#signsLists = false
    }
    this.#identity = found
    this.#prefix = found.api
    this.#trust()
    return found
  }

  /** Asks whether the hub that calls are for still answers. @throws HubError `nonsense` if another one does */
  async confirm(): Promise<void> {
    const before = this.#identity
    if (before === undefined) return void (await this.identify())
    const found = await this.#observed('ping', this.#ping())
    this.#expect(found.id)
    this.#trust()
  }

  /** An id that holds the API key counts as none: it would become part of topics. */
  #cleanId(id: string | null): string | null {
    const { clean = asItIs } = this.#options
    return id === null || clean(id) === id ? id : null
  }

  #trust(): void {
    this.#proven = true
    this.#unsure = false
  }

  /** The question that needs no key; who does not answer it as the hub is not shown the key after it. */
  async #ping(): Promise<Identity> {
    try {
      return await this.#greeted()
    } catch (error) {
      this.#proven = false
      throw error
    }
  }

  async #greeted(): Promise<Identity> {
    const { pathPrefix } = this.#options
    const candidates = pathPrefix === 'auto' ? API_PREFIXES : [pathPrefix]
    let failure = new HubError('unsupported', 'The hub answers no known API path.', { status: 404 })
    for (const prefix of candidates) {
      const answer = await this.#request('GET', `/api/${prefix}/system/ping`, { key: false })
      const id = this.#cleanId(header(answer, 'x-homey-id'))
      // Anything can answer like a hub that does not say which one it is: not in place of one that has said it.
      const isNameless = id === null && (this.#identity?.id ?? null) !== null
      if (isGreeting(answer) && !isNameless) {
        return { id, firmware: header(answer, 'x-homey-version'), api: prefix }
      }
      const refused = this.#refusal('ping', {}, answer)
      // The other one may still be a hub's, where this one is answered by somebody else, or with "no such path".
      if (!isElsewhere(answer) || refused.code === 'subscription') throw refused
      if (answer.status !== 404) {
        const what = isNameless ? 'Its answer lacks the identity that the hub showed before.' : NO_HUB
        failure = new HubError('nonsense', what, { status: answer.status })
      }
    }
    throw failure
  }

  /**
   * Runs one operation.
   * @param mayLeave called right before its request goes out; what it throws ends the call, and nothing was sent
   * @throws HubError
   */
  call<N extends OperationName>(name: N, parameters: Parameters<N>, mayLeave?: () => void): Promise<Result<N>> {
    return this.#observed(name, this.#call(name, parameters, mayLeave, false))
  }

  /** Reads to prove something: only the hub's own answer counts. @throws HubError */
  look<N extends OperationName>(name: N, parameters: Parameters<N>): Promise<Result<N>> {
    return this.#observed(name, this.#call(name, parameters, undefined, true))
  }

  async #call<N extends OperationName>(
    name: N,
    parameters: Parameters<N>,
    mayLeave: Sending['mayLeave'],
    isLook: boolean,
  ): Promise<Result<N>> {
    const operation: Operation<Parameters<N>, Result<N>> = OPERATIONS[name]
    let answer = await this.#send(operation, operation.path, parameters, mayLeave)
    const lacking =
      answer.status === 404 || (answer.status === 500 && this.#refusal(name, parameters, answer).code === 'unsupported')
    if (lacking && operation.otherPath !== undefined) {
      answer = await this.#send(operation, operation.otherPath, parameters, mayLeave)
    }
    if (operation.method !== 'GET') {
      const asked = askedOf(name, parameters, operation.body?.(parameters))
      const said = this.#judge(answer, asked, () => this.#refusal(name, parameters, answer))
      return operation.decode(said, parameters, this.#options.clean ?? asItIs)
    }
    if (isLook && !isHubs(answer, this.#signs)) {
      this.#proven = false
      throw new HubError('nonsense', 'Something on the way to the hub answered in its place.')
    }
    if (!isSuccess(operation.method, answer.status)) throw this.#refusal(name, parameters, answer)
    this.#refuseStandIn(answer)
    if (name === 'getApps') {
      this.#listSigned = header(answer, 'x-homey-id') !== null
      this.#signsLists ||= this.#listSigned
    }
    try {
      return operation.decode(json(answer), parameters, this.#options.clean ?? asItIs)
    } catch (error) {
      this.#proven = false
      throw error
    }
  }

  /** A read that the hub has not answered itself tells nothing. @throws HubError */
  #refuseStandIn(answer: Answer): void {
    const { status } = answer
    if (!this.#signsLists || header(answer, 'x-homey-id') !== null) return
    this.#proven = false
    throw new HubError('failed', `${STAND_IN} ${status}.`, { status, foreign: true })
  }

  #judge(answer: Answer, asked: Asked | null, refused: () => HubError): Json {
    try {
      return judgeWritten(answer, asked, isHubs(answer, this.#signs, asked === null), refused)
    } catch (error) {
      const code = error instanceof HubError ? error.code : undefined
      if (code === 'no_answer' || code === 'nonsense') this.#proven = false
      throw error
    }
  }

  /**
   * Calls anything that the hub offers.
   * @param mayLeave as with `call`
   * @returns the hub's answer; of an app that answers with something else than JSON, its text
   * @throws HubError
   */
  callEndpoint(endpoint: Endpoint, mayLeave?: () => void): Promise<Json> {
    return this.#observed('callEndpoint', this.#callEndpoint(endpoint, mayLeave))
  }

  async #callEndpoint(endpoint: Endpoint, mayLeave: Sending['mayLeave']): Promise<Json> {
    const { section, method, body } = endpoint
    const sending = {
      body: body === undefined ? undefined : JSON.stringify(body),
      maxBytes: MAX_ENDPOINT_BYTES,
      mayLeave,
    }
    const request = () => this.#ask(method, pathOf(endpoint, this.#prefix), sending)
    const refused = (to: Answer) => this.#refuse(refusedEndpoint(endpoint), to)
    if (method !== 'GET') {
      const answer = await request()
      return this.#judge(answer, section === 'app' ? null : askedBy(endpoint), () => refused(answer))
    }
    const answer = await this.#repeatIfCutOff(request)
    if (!isSuccess(method, answer.status)) throw refused(answer)
    this.#refuseStandIn(answer)
    try {
      return decodeJson(section === 'app' ? jsonOrText(answer) : json(answer))
    } catch (error) {
      if (section === 'manager') this.#proven = false
      throw error
    }
  }

  /**
   * Reads a file of the hub, such as an icon, as it gives it to everybody: the key is not shown.
   * @param path as a record of the hub has it
   * @returns `undefined` if the path is none on the hub, or nothing is there
   * @throws HubError also for more than `maxBytes`
   */
  async file(path: string, maxBytes: number): Promise<Buffer | undefined> {
    if (!isPath(path)) return undefined
    const answer = await this.#limiter.run(this.#turn, () => this.#rest.request('GET', path, { key: false, maxBytes }))
    return answer.status === 200 ? answer.body : undefined
  }

  /**
   * Asks an app's own web API with GET.
   * @param path below the app's, with a slash in front
   * @returns the HTTP status
   * @throws HubError
   */
  async askApp(id: string, path: string): Promise<number> {
    // Source: the official client's paths of app sections.
    const whole = `/api/app/${encodeSegment(id)}${path}`
    if (!path.startsWith('/') || !isPath(whole)) throw new HubError('invalid_argument', 'That is no path.')
    return (await this.#ask('GET', whole, {})).status
  }

  /** Reports how a call ended and how long it took. */
  async #observed<T>(operation: HubCall['operation'], call: Promise<T>): Promise<T> {
    const started = this.#clock.elapsed()
    const ended = (outcome: HubCall['outcome']) =>
      this.#options.onCall?.({ operation, outcome, ms: this.#clock.elapsed() - started })
    try {
      const result = await call
      ended('ok')
      return result
    } catch (error) {
      // Anything else is the caller's own word that it must not be sent.
      if (error instanceof HubError) ended(error.code)
      throw error
    }
  }

  /** Ends calls under way as `unreachable` or `no_answer`; safe to call twice. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#rest.close()
  }

  #send<I extends object>(
    operation: Operation<I, unknown>,
    template: string,
    input: I,
    mayLeave: Sending['mayLeave'],
  ): Promise<Answer> {
    const { manager, method, query, body, maxBytes } = operation
    const search = query === undefined ? '' : new URLSearchParams(query(input)).toString()
    const path = `/api/${this.#prefix}/${manager}${fill(template, input)}${search === '' ? '' : `?${search}`}`
    const sending = { body: body === undefined ? undefined : JSON.stringify(body(input)), maxBytes, mayLeave }
    const request = () => this.#ask(method, path, sending)
    return method === 'GET' ? this.#repeatIfCutOff(request) : request()
  }

  /** Asks with the key: only a hub, and only the one that calls are for. */
  async #ask(method: Method, path: string, sending: Omit<Sending, 'key'>): Promise<Answer> {
    const answer = await this.#askProven(method, path, sending)
    const firmware = header(answer, 'x-homey-version')
    // Also where it was not said before: a gateway may have left it out.
    const isNews = firmware !== null && this.#identity !== undefined && firmware !== this.#identity.firmware
    if (isNews || isPage(answer) || isRedirect(answer)) this.#proven = false
    const id = header(answer, 'x-homey-id')
    // Another hub may have carried out what was meant for this one.
    this.#expect(id, method === 'GET' ? 'nonsense' : 'no_answer')
    this.#signs ||= id !== null
    return answer
  }

  /** What was true when the call was made may have changed by the time that its connection is there. */
  async #askProven(method: Method, path: string, sending: Omit<Sending, 'key'>): Promise<Answer> {
    // A hub may well end the connection with the answer that has shown who it is.
    let hasAsked = false
    const isProven = () => this.#proven && (hasAsked || !this.#unsure)
    const mayLeave = () => {
      if (!isProven()) throw new Unproven()
      sending.mayLeave?.()
    }
    for (let tries = 1; ; tries += 1) {
      if (!isProven()) {
        await this.#prove()
        hasAsked = true
      }
      try {
        return await this.#request(method, path, { ...sending, key: true, mayLeave })
      } catch (error) {
        if (!(error instanceof Unproven)) throw error
        if (tries === MAX_PROOFS) throw new HubError('unreachable', 'The connections to the hub do not last.')
      }
    }
  }

  /** One question serves all calls that wait for its answer. */
  #prove(): Promise<void> {
    this.#proving ??= this.confirm()
      .catch((error: unknown) => {
        this.#proven = false
        throw error
      })
      .finally(() => {
        this.#proving = undefined
      })
    return this.#proving
  }

  #expect(id: string | null, code: HubErrorCode = 'nonsense'): void {
    const wanted = this.#identity?.id ?? null
    if (id === null || wanted === null || id === wanted) return
    this.#proven = false
    throw new HubError(code, 'Another hub answers at the address.')
  }

  async #request(method: Method, path: string, sending: Sending): Promise<Answer> {
    try {
      const answer = await this.#limiter.run(this.#turn, () => this.#rest.request(method, path, sending))
      if (answer.status === 429) this.#limiter.restrict(SPACED, SPACED_MS)
      return answer
    } catch (error) {
      if (error instanceof HubError) this.#proven = false
      throw error
    }
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
    return this.#refuse({ name, operation: OPERATIONS[name], parameters }, answer)
  }

  #refuse(call: RefusedCall, answer: Answer): HubError {
    return refusal(call, answer, {
      knows: this.#options.knows,
      signs: this.#signsLists,
      now: this.#clock.now(),
      clean: this.#options.clean,
    })
  }
}

/** Of the answer to a call by its path. */
const MAX_ENDPOINT_BYTES = 1024 * 1024

/** An operation of the table keeps its name, so that a refusal tells as much as of its own call. */
function refusedEndpoint({ operation, parameters, section, item, method, path }: Endpoint): RefusedCall {
  if (operation !== null) return { name: operation, operation: OPERATIONS[operation], parameters }
  const ofApp = section === 'app' ? { id: item } : {}
  return {
    name: `such endpoint of ${item} (${method})`,
    operation: { method, path, optional: true },
    parameters: ofApp,
  }
}

/** What an app answers is its own affair, but a page is nobody's. */
function jsonOrText(answer: Answer): unknown {
  if (answer.body.length === 0) return null
  if (isPage(answer)) throw new HubError('nonsense', 'A page was answered.', { status: answer.status, foreign: true })
  return parse(answer) ?? textOf(answer)
}

const MAX_PATH = 512

/** Whether a text is a path on the hub itself, written as it is sent. */
function isPath(text: string): boolean {
  const base = 'http://hub.invalid'
  if (!text.startsWith('/') || text.length > MAX_PATH || !URL.canParse(text, base)) return false
  const url = new URL(text, base)
  return url.origin === base && url.pathname + url.search === text
}

/** Whether an answer to a ping says nothing of a hub at another path. */
function isElsewhere(answer: Answer): boolean {
  return answer.status < 500 && answer.status !== 429
}

function isRedirect({ status }: Answer): boolean {
  return status >= 300 && status < 400
}

/** Template → a text and the name of a parameter in turn; there are as many as operations. */
const templates = new Map<string, readonly string[]>()

/** Fills the `:parameters` of a path template, percent-encoded. */
function fill(template: string, parameters: object): string {
  let parts = templates.get(template)
  if (parts === undefined) {
    parts = template.split(/:(\w+)/)
    templates.set(template, parts)
  }
  return parts.reduce((path, part, i) => path + (i % 2 === 0 ? part : encodeSegment(Reflect.get(parameters, part))))
}

function encodeSegment(value: unknown): string {
  // A dot segment would be resolved away and name another resource.
  if (typeof value === 'string' && value !== '' && value !== '.' && value !== '..' && value.isWellFormed()) {
    return encodeURIComponent(value)
  }
  throw new HubError('invalid_argument', 'An id or name that is empty, a dot segment or not Unicode names nothing.')
}

/** A body that is empty or JSON; anything else is not this API speaking. */
function json(answer: Answer): unknown {
  const { status, body } = answer
  if (body.length === 0) return null
  const value = parse(answer)
  if (value !== undefined) return value
  const what = holdsTooMany(textOf(answer)) ? `more than ${MAX_VALUES} values` : 'something that is not JSON'
  throw new HubError('nonsense', `The hub answered with ${what}.`, { status })
}
