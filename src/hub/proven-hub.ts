/** What answers at the address: it is shown the key only while it has proven to be the hub that calls are for. */
import type { Clock } from '../base/clock.ts'
import { Limiter } from '../base/limiter.ts'
import { type Answer, header, isGreeting, isPage } from './answer.ts'
import type { HubClientOptions } from './client.ts'
import { asItIs } from './decode.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import { HttpClient, type Sending } from './http-client.ts'
import { type Method, OPERATIONS, type OperationName } from './operations.ts'
import { refusal, retryAfter } from './refusal.ts'

export const API_PREFIXES = ['manager', 'managers'] as const
/** The two ways in which hubs spell their API's root: `/api/manager/…` and `/api/managers/…`. */
export type ApiPrefix = (typeof API_PREFIXES)[number]

/** Who answers at the hub's address. */
export interface Identity {
  readonly id: string | null
  readonly firmware: string | null
  readonly api: ApiPrefix
}

/** A call that has ended, for those who count. */
export interface HubCall {
  /** `callEndpoint` for what was named by its path. */
  readonly operation: OperationName | 'callEndpoint'
  readonly outcome: 'ok' | HubErrorCode
  readonly ms: number
}

export interface Asking extends Omit<Sending, 'key'> {
  /** Whether a read is not repeated either. */
  readonly once?: boolean
}

/** How often to ask a hub who it is if its connections end as fast as they are made. */
const MAX_PROOFS = 3

/** What a hub that limits requests takes: from its first complaint on, and for so long after the latest one. */
const SPACED = { slots: 2, apartMs: 150 }
const SPACED_MS = 10 * 60_000
/** For how long at least nothing is read that can wait, once a hub has asked for fewer requests. */
const CALM_MS = 60_000

const NO_HUB = 'What answers at the address is no hub.'

/** Nothing was sent, as who is at the other end is not known any more. */
class Unproven extends Error {}

export class ProvenHub {
  /** How it spells its API's root. */
  prefix: ApiPrefix
  /**
   * Whether the hub has ever shown its identity with an answer to a request with the key. Pings do not count: a hub may
   * show it there alone.
   */
  signs = false
  /** Whether the hub has ever shown its identity with a list: what it answers to other reads shows it, too. */
  signsLists = false
  /** Whether the latest list of apps said itself which hub it is of. */
  listSigned = false
  readonly #options: Omit<HubClientOptions, 'knows'>
  readonly #clock: Clock
  readonly #http: HttpClient
  readonly #limiter: Limiter
  readonly #closing = new AbortController()
  /** At the end what waits goes on, and fails by itself. */
  readonly #turn = { signal: this.#closing.signal }
  /** The hub that calls are for; none before the first ping was answered. */
  #identity: Identity | undefined
  /** Whether the hub has shown who it is, and nothing has spoken against it since. Changed here only. */
  isProven = false
  /** Whether the next connection may lead to another one. */
  #isUnsure = false
  #proving: Promise<void> | undefined
  /** Requests that wait or are under way. */
  #pending = 0
  /** Until when the hub wants fewer requests, in `clock.elapsed()` milliseconds. */
  #limitedUntil = Number.NEGATIVE_INFINITY

  constructor(options: Omit<HubClientOptions, 'knows'>, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#http = new HttpClient(options, clock)
    this.#limiter = new Limiter({ clock, slots: Number.POSITIVE_INFINITY })
    this.prefix = options.pathPrefix === 'auto' ? 'manager' : options.pathPrefix
  }

  /** Whether it asks for no pause, and no request waits or is under way. */
  get isIdle(): boolean {
    return this.#pending === 0 && this.#clock.elapsed() >= this.#limitedUntil
  }

  /** The connections to the hub have ended: who is there has to show it before the next one is given the key. */
  doubt(): void {
    this.#isUnsure = true
  }

  /** Something speaks against what answers: it has to show again that it is the hub before the next call. */
  distrust(): void {
    this.isProven = false
  }

  /** Before the key goes another way than with a call: asks who is there, unless that is known. @throws HubError */
  async assure(): Promise<void> {
    if (!this.isProven || this.#isUnsure) await this.#prove()
  }

  /** Asks who is there and which path prefix it answers; later calls are for that hub. @throws HubError */
  async identify(): Promise<Identity> {
    const found = await this.#ping()
    const before = this.#identity
    if (found.id !== null && before?.id !== found.id) {
      this.signs = false
      this.signsLists = false
    }
    this.#identity = found
    this.prefix = found.api
    this.#trust()
    return found
  }

  /** Asks whether the hub that calls are for still answers. @throws HubError `nonsense` if another one does */
  async confirm(): Promise<void> {
    if (this.#identity === undefined) return void (await this.identify())
    const { id } = await this.#ping()
    this.#expect(id, 'nonsense')
    this.#trust()
  }

  /**
   * Asks with the key: only a hub, and only the one that calls are for. The hub closes idle connections, and a request
   * that meets such an end gets no answer, well before the deadline: a read is sent once more. A write may have been
   * carried out, so it never is.
   * @throws HubError
   */
  async ask(method: Method, path: string, { once, ...sending }: Asking): Promise<Answer> {
    const early = this.#clock.elapsed() + this.#options.timeoutMs / 2
    let mayRepeat = method === 'GET' && !once
    // A hub may well end the connection with the answer that has shown who it is.
    let hasShown = false
    // What was true when the call was made may have changed by the time that its connection is there.
    const mayLeave = () => {
      if (!this.isProven || (this.#isUnsure && !hasShown)) throw new Unproven()
      sending.mayLeave?.()
    }
    for (let tries = 1; ; ) {
      try {
        if (!this.isProven || (this.#isUnsure && !hasShown)) {
          await this.#prove()
          hasShown = true
        }
        return this.#noteIdentity(method, await this.#send(method, path, { ...sending, key: true, mayLeave }))
      } catch (error) {
        if (error instanceof Unproven) {
          if (tries === MAX_PROOFS) throw new HubError('unreachable', 'The connections to the hub do not last.')
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

  /** Reads what the hub gives to everybody: the key is not shown. @throws HubError */
  read(path: string, maxBytes: number): Promise<Answer> {
    return this.#limiter.run(this.#turn, () => this.#http.request('GET', path, { key: false, maxBytes }))
  }

  /** Reports how a call ended and how long it took. */
  async observed<T>(operation: HubCall['operation'], call: Promise<T>): Promise<T> {
    const started = this.#clock.elapsed()
    let outcome: HubCall['outcome'] | undefined = 'ok'
    try {
      return await call
    } catch (error) {
      // Anything else is the caller's own word that it must not be sent.
      outcome = error instanceof HubError ? error.code : undefined
      throw error
    } finally {
      if (outcome !== undefined) this.#options.onCall?.({ operation, outcome, ms: this.#clock.elapsed() - started })
    }
  }

  /** Ends calls under way as `unreachable` or `no_answer`; safe to call twice. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#http.close()
  }

  /** What an answer to a request with the key says of who is there. @throws HubError if it is another hub's */
  #noteIdentity(method: Method, answer: Answer): Answer {
    const { status } = answer
    const firmware = header(answer, 'x-homey-version')
    // Even if it was not said before: a gateway may have left it out.
    const isNews = firmware !== null && this.#identity !== undefined && firmware !== this.#identity.firmware
    if (isNews || isPage(answer) || (status >= 300 && status < 400)) this.isProven = false
    const id = header(answer, 'x-homey-id')
    // Another hub may have carried out what was meant for this one.
    this.#expect(id, method === 'GET' ? 'nonsense' : 'no_answer')
    this.signs ||= id !== null
    return answer
  }

  #expect(id: string | null, code: HubErrorCode): void {
    const wanted = this.#identity?.id ?? null
    if (id === null || wanted === null || id === wanted) return
    this.isProven = false
    throw new HubError(code, 'Another hub answers at the address.')
  }

  #trust(): void {
    this.isProven = true
    this.#isUnsure = false
  }

  /** One question serves all calls that wait for its answer. */
  #prove(): Promise<void> {
    this.#proving ??= this.confirm().finally(() => {
      this.#proving = undefined
    })
    return this.#proving
  }

  /** The question that needs no key; what does not answer it as the hub is not shown the key after it. */
  async #ping(): Promise<Identity> {
    try {
      return await this.observed('ping', this.#greeted())
    } catch (error) {
      this.isProven = false
      throw error
    }
  }

  async #greeted(): Promise<Identity> {
    const { pathPrefix, clean = asItIs } = this.#options
    const candidates = pathPrefix === 'auto' ? API_PREFIXES : [pathPrefix]
    let failure = new HubError('unsupported', 'The hub answers no known API path.', { status: 404 })
    for (const prefix of candidates) {
      const answer = await this.#send('GET', `/api/${prefix}/system/ping`, { key: false })
      const said = header(answer, 'x-homey-id')
      // An id that holds the API key counts as none: it would become part of topics.
      const id = said !== null && clean(said) === said ? said : null
      // Anything can answer like a hub that does not say which one it is: not in place of one that has said it.
      const isNameless = id === null && (this.#identity?.id ?? null) !== null
      if (isGreeting(answer) && !isNameless) {
        return { id, firmware: header(answer, 'x-homey-version'), api: prefix }
      }
      const context = { knows: () => false, signs: this.signsLists, now: this.#clock.now(), clean }
      const refused = refusal({ name: 'ping', operation: OPERATIONS.ping, parameters: {} }, answer, context)
      // The other one may still be a hub's if something else answers this one, or the answer is "no such path".
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
    try {
      const answer = await this.#limiter.run(this.#turn, () => this.#http.request(method, path, sending))
      if (answer.status === 429) {
        const pause = retryAfter(answer, this.#clock.now()) ?? 0
        this.#limitedUntil = this.#clock.elapsed() + Math.max(CALM_MS, pause)
        this.#limiter.restrict(SPACED, SPACED_MS)
      }
      return answer
    } catch (error) {
      if (error instanceof HubError) this.isProven = false
      throw error
    } finally {
      this.#pending -= 1
    }
  }
}
