/** Sends the API key only while the server at the hub's address is known to be the right hub. */
import type { Clock } from '../base/clock.ts'
import { Limiter } from '../base/limiter.ts'
import { type Answer, header, isGreeting, isPage } from './answer.ts'
import type { HubClientOptions } from './client.ts'
import { asItIs } from './decode.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import { HttpClient, type Sending } from './http-client.ts'
import { type Method, OPERATIONS, type OperationName } from './operations.ts'
import { refusal, retryAfter } from './refusal.ts'

/** The two spellings of the API root, the usual spelling first: `/api/manager/…` and `/api/managers/…`. */
export const API_PREFIXES = ['manager', 'managers'] as const
export type ApiPrefix = (typeof API_PREFIXES)[number]

export interface Identity {
  readonly id: string | null
  readonly firmware: string | null
  readonly api: ApiPrefix
}

export interface HubCall {
  /** The operation's name; `callEndpoint` for a call to an endpoint that a client has chosen. */
  readonly operation: OperationName | 'callEndpoint'
  readonly outcome: 'ok' | HubErrorCode
  readonly ms: number
}

/** Maximum number of attempts to send a request if the hub's identity becomes uncertain before each attempt. */
const MAX_PROOFS = 3
/** Maximum number of identity checks for one request because of lost connections. */
const MAX_CHECKS = 2

/** Limits on requests after a 429 response, and how long these limits apply. */
const SPACED = { slots: 2, apartMs: 150 }
const SPACED_MS = 10 * 60_000
/** Minimum time without background reads after a 429 response. */
const CALM_MS = 60_000

const CLOSING = 'This bridge stops serving the hub.'
const NO_HUB = 'The server at the address is not a hub.'

/** Thrown before a request is sent, because the server's identity is no longer certain. */
class Unproven extends Error {}

export class ProvenHub {
  prefix: ApiPrefix
  /** Whether any response to a request with the API key had the hub's id. Some hubs send their id only with pings. */
  signs = false
  /** Whether the hub has ever sent its id with a list of apps. If so, the hub also sends its id with other reads. */
  signsLists = false
  /** Whether the response with the latest list of apps contained the hub's id. */
  listSigned = false
  readonly #options: Omit<HubClientOptions, 'hasApp'>
  readonly #clock: Clock
  readonly #http: HttpClient
  readonly #limiter: Limiter
  readonly #closing = new AbortController()
  /** On `close`, makes the limiter start waiting requests immediately, so that they fail. */
  readonly #turn = { signal: this.#closing.signal }
  /** The hub for which calls are intended; `undefined` before the first ping is answered. */
  #identity: Identity | undefined
  /** Whether the hub has identified itself, and nothing has cast doubt on that since. Set only by this class. */
  isProven = false
  /** Number of lost connections and doubtful responses: so far, and when the last successful identity check began. */
  #losses = 0
  #checkedLosses = 0
  /** The running identity check, and `#losses` when it began. */
  #proving: { readonly losses: number; readonly done: Promise<void> } | undefined
  readonly #writes = new Set<Promise<Answer>>()
  #refusesWrites = false
  #pending = 0
  /** Until when the hub is considered to limit requests, in `clock.elapsed()` milliseconds. */
  #limitedUntil = Number.NEGATIVE_INFINITY

  constructor(options: Omit<HubClientOptions, 'hasApp'>, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#http = new HttpClient(options, clock)
    this.#limiter = new Limiter({ clock, slots: Number.POSITIVE_INFINITY })
    this.prefix = options.pathPrefix === 'auto' ? 'manager' : options.pathPrefix
  }

  /** The firmware at the latest identity check; `undefined` before the first. */
  get firmware(): Identity['firmware'] | undefined {
    return this.#identity?.firmware
  }

  /** Whether the hub does not limit requests, and no request is waiting or running. */
  get isIdle(): boolean {
    return this.#pending === 0 && this.#clock.elapsed() >= this.#limitedUntil
  }

  /** Requires a new identity check before the API key is sent again, because connections have ended. */
  doubt(): void {
    this.#losses += 1
  }

  /** Whether the identity must be checked. @param checks number of checks that the request has already waited for */
  #isUncertain(checks = 0): boolean {
    // Limit the checks, because the hub may close its connections right after each check.
    return !this.isProven || (checks < MAX_CHECKS && this.#losses !== this.#checkedLosses)
  }

  /** Requires a new identity check before the next call, because a response casts doubt on the hub's identity. */
  distrust(): void {
    this.isProven = false
    // A running check may have begun before that response, so its result must not count.
    this.doubt()
  }

  /**
   * Checks the identity until it is certain. Required before sending the API key without `request`. Returns the number
   * of checks, including the given number. @throws HubError
   */
  async ensure(checks = 0): Promise<number> {
    let all = checks
    for (; this.#isUncertain(all); all += 1) await this.#prove()
    return all
  }

  /**
   * Stops sending writes, even those that are already waiting for a connection. Resolves when all writes that were sent
   * have been answered.
   */
  async endWrites(): Promise<void> {
    this.#refusesWrites = true
    await Promise.allSettled(this.#writes)
  }

  /** Reads the identity of the hub for which all later calls are intended. @throws HubError */
  async identify(): Promise<Identity> {
    const losses = this.#losses
    const found = await this.#ping()
    const before = this.#identity
    if (found.id !== null && before?.id !== found.id) {
      this.signs = false
      this.signsLists = false
    }
    this.#identity = found
    this.prefix = found.api
    this.#trust(losses)
    return found
  }

  /** Checks that the same hub still answers. @throws HubError `nonsense` if another hub answers */
  async confirm(): Promise<void> {
    if (this.#identity === undefined) return void (await this.identify())
    const losses = this.#losses
    const { id, firmware } = await this.#ping(this.prefix)
    this.#expect(id, 'nonsense')
    // Adopt the firmware; otherwise, each response of an updated hub would cast doubt on the hub's identity.
    this.#identity = { ...this.#identity, firmware }
    this.#trust(losses)
  }

  /**
   * Sends a request with the API key to the identified hub. Repeats a read that fails early, for example on an idle
   * connection that the hub is closing, except with `once`. Never repeats a write, because it may have been done.
   * @throws HubError
   */
  async request(
    method: Method,
    path: string,
    { once, ...sending }: Omit<Sending, 'key'> & { once?: boolean },
  ): Promise<Answer> {
    const early = this.#clock.elapsed() + this.#options.timeoutMs / 2
    let mayRepeat = method === 'GET' && !once
    let checks = 0
    // Check again, because the request may have waited for a connection.
    const mayLeave = () => {
      if (this.#isUncertain(checks)) throw new Unproven()
      if (this.#refusesWrites && method !== 'GET') throw new HubError('unreachable', CLOSING)
      sending.mayLeave?.()
    }
    for (let tries = 1; ; ) {
      try {
        if (this.#isUncertain(checks)) checks = await this.ensure(checks)
        return this.#noteIdentity(method, await this.#send(method, path, { ...sending, key: true, mayLeave }))
      } catch (error) {
        if (error instanceof Unproven) {
          if (tries === MAX_PROOFS) throw new HubError('unreachable', 'The hub closes every connection immediately.')
          tries += 1
          continue
        }
        const isCutOff = error instanceof HubError && error.code === 'no_answer' && this.#clock.elapsed() < early
        if (!mayRepeat || !isCutOff) throw error
        mayRepeat = false
        tries = 1
      }
    }
  }

  /** Reads a public resource, without sending the API key. @throws HubError */
  read(path: string, maxBytes: number): Promise<Answer> {
    return this.#limiter.run(this.#turn, () => this.#http.request('GET', path, { key: false, maxBytes }))
  }

  async observed<T>(operation: HubCall['operation'], call: Promise<T>): Promise<T> {
    const started = this.#clock.elapsed()
    let outcome: HubCall['outcome'] | undefined = 'ok'
    try {
      return await call
    } catch (error) {
      // Any other error was thrown by `mayLeave`, so the request was not sent.
      outcome = error instanceof HubError ? error.code : undefined
      throw error
    } finally {
      if (outcome !== undefined) this.#options.onCall?.({ operation, outcome, ms: this.#clock.elapsed() - started })
    }
  }

  /** Rejects pending calls with `unreachable` or `no_answer`; safe to call twice. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#http.close()
  }

  #noteIdentity(method: Method, answer: Answer): Answer {
    const { status } = answer
    const firmware = header(answer, 'x-homey-version')
    // A firmware that was unknown before counts as an update, although a gateway may only have removed the header.
    const isUpdated = firmware !== null && this.#identity !== undefined && firmware !== this.#identity.firmware
    if (isUpdated || isPage(answer) || (status >= 300 && status < 400)) this.distrust()
    const id = header(answer, 'x-homey-id')
    // If another hub has answered a write, the outcome is unknown, because that hub may have carried out the write.
    this.#expect(id, method === 'GET' ? 'nonsense' : 'no_answer')
    this.signs ||= id !== null
    return answer
  }

  #expect(id: string | null, code: HubErrorCode): void {
    const wanted = this.#identity?.id ?? null
    if (id === null || wanted === null || id === wanted) return
    this.distrust()
    throw new HubError(code, 'Another hub answers at the address.')
  }

  #trust(losses: number): void {
    this.isProven = true
    this.#checkedLosses = losses
  }

  async #prove(): Promise<void> {
    const losses = this.#losses
    // A check that began before the latest loss may have reached a previous server at this address.
    while (this.#proving !== undefined && this.#proving.losses < losses) await this.#proving.done
    this.#proving ??= { losses: this.#losses, done: this.confirm().finally(() => (this.#proving = undefined)) }
    await this.#proving.done
  }

  /**
   * Reads the identity without sending the API key, so that only the right hub receives the key.
   * @param first the path prefix to try first
   */
  async #ping(first: ApiPrefix = 'manager'): Promise<Identity> {
    try {
      return await this.observed('ping', this.#greeted(first))
    } catch (error) {
      // A hub that limits requests gives no new reason for doubt, and needs no further requests.
      if (!(error instanceof HubError) || error.code !== 'rate_limited') this.distrust()
      throw error
    }
  }

  async #greeted(first: ApiPrefix): Promise<Identity> {
    const { pathPrefix, clean = asItIs } = this.#options
    const candidates = pathPrefix === 'auto' ? new Set([first, ...API_PREFIXES]) : [pathPrefix]
    let failure = new HubError('unsupported', 'The hub has no known API path.', { status: 404 })
    for (const prefix of candidates) {
      const answer = await this.#send('GET', `/api/${prefix}/system/ping`, { key: false, isFresh: true })
      const sentId = header(answer, 'x-homey-id')
      // Ignore an id that contains the API key, because the id becomes part of topics.
      const id = sentId !== null && clean(sentId) === sentId ? sentId : null
      // Any server can answer like a hub without an id, so such an answer must not replace a hub that has sent its id.
      const isNameless = id === null && (this.#identity?.id ?? null) !== null
      if (isGreeting(answer) && !isNameless) {
        return { id, firmware: header(answer, 'x-homey-version'), api: prefix }
      }
      const context = { hasApp: () => false, signs: this.signsLists, now: this.#clock.now(), clean }
      const refused = refusal({ name: 'ping', operation: OPERATIONS.ping, parameters: {} }, answer, context)
      // The other prefix may be right if another server answered, or if this path does not exist.
      const isElsewhere = answer.status < 500 && answer.status !== 429
      if (!isElsewhere || refused.code === 'subscription') throw refused
      if (answer.status !== 404) {
        const what = isNameless ? 'Its answer lacks the identity that the hub showed before.' : NO_HUB
        failure = new HubError('nonsense', what, { status: answer.status })
      }
    }
    throw failure
  }

  async #send(method: Method, path: string, sending: Sending): Promise<Answer> {
    this.#pending += 1
    const running = this.#limiter.run(this.#turn, () => this.#http.request(method, path, sending))
    if (method !== 'GET') this.#writes.add(running)
    try {
      const answer = await running
      if (answer.status === 429) {
        const pause = retryAfter(answer, this.#clock.now()) ?? 0
        this.#limitedUntil = this.#clock.elapsed() + Math.max(CALM_MS, pause)
        this.#limiter.restrict(SPACED, SPACED_MS)
      }
      return answer
    } catch (error) {
      if (error instanceof HubError) this.distrust()
      throw error
    } finally {
      this.#pending -= 1
      this.#writes.delete(running)
    }
  }
}
