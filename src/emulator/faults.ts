/** The ways an HTTP answer goes wrong. Each is one row: whether the request is carried out, and what comes back. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { isRecord } from '../base/json.ts'
import { HubError } from './hub-error.ts'
import type { ANSWERS, BehaviourOptions } from './misbehaviour.ts'
import type { Timers } from './timers.ts'

export type FaultName = keyof typeof ANSWERS
type FaultOptions = Pick<BehaviourOptions, FaultName>

/** A finished answer, before any fault has touched it. */
export interface Outcome {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
  /** Not the hub's own answer: it carries no identity. */
  foreign?: true
}

/** What a fault works with: the request, and `send`, which is how every ordinary answer leaves. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  timers: Timers
  /** Writes the head only, remembering the status. */
  head(status: number, headers: Readonly<Record<string, string>>, foreign?: true): void
  send(outcome: Outcome): void
}

export interface Fault {
  executes: boolean
  /** Set where the fault is a plain refusal, which the realtime channel can word too. */
  refusal?: HubError
  /** Asked for each request that the fault concerns; default: it meets all. `now` in milliseconds that never jump. */
  meets?(now: number): boolean
  answer(exchange: Exchange, outcome: Outcome): void
}

export const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

export const FAULTS: { [N in FaultName]: (options: FaultOptions[N]) => Fault } = {
  'answer-status': refuse,
  'subscription-inactive': () => worded(subscriptionInactive(), { statusCode: 403, error: 'Subscription Inactive' }),
  'missing-api-method': () => refuse({ status: 500, error: 'missing_api_method' }),
  'rate-limit': ({ requests = 4, windowMs = 500, retryAfter }) => {
    const limit = new RateLimit(requests, windowMs)
    return {
      ...refuse({ status: 429, ...(retryAfter !== undefined && { retryAfter }) }),
      meets: (now) => limit.exceeds(now),
    }
  },
  pretend: ({ status = 200, value = null }) => ({
    executes: false,
    answer: (exchange) => exchange.send({ status, headers: JSON_TYPE, text: JSON.stringify(value) }),
  }),
  'not-json': ({ text = 'This is not JSON' }) => ({
    executes: true,
    answer: (exchange, outcome) => exchange.send({ ...outcome, text }),
  }),
  'truncated-json': () => ({
    executes: true,
    answer: (exchange, outcome) =>
      exchange.send({ ...outcome, text: outcome.text.slice(0, Math.floor(outcome.text.length / 2)) }),
  }),
  'wrong-shape': ({ value = ['neither', 7, null] }) => ({
    executes: true,
    answer: (exchange, outcome) => exchange.send({ ...outcome, text: JSON.stringify(value) }),
  }),
  'empty-list': () => ({
    executes: true,
    answer: (exchange, outcome) => exchange.send({ ...outcome, text: '{}' }),
  }),
  'half-list': ({ keep = 0.5 }) =>
    altered((list) => {
      const entries = Object.entries(list)
      return Object.fromEntries(entries.slice(0, Math.ceil(entries.length * keep)))
    }),
  'foreign-ids': ({ suffix = '.other' }) =>
    altered((answer) => {
      const renamed = (value: unknown) =>
        isRecord(value) ? { ...value, id: `${String(value['id'])}${suffix}` } : value
      if (Object.hasOwn(answer, 'id')) return renamed(answer)
      return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, renamed(value)]))
    }),
  'deep-json': ({ levels = 5000 }) => ({
    executes: true,
    answer(exchange, outcome) {
      const value = parsed(outcome.text)
      const deep = '['.repeat(levels) + ']'.repeat(levels)
      const members = isRecord(value) ? Object.keys(value).map((key) => `${JSON.stringify(key)}:${deep}`) : []
      exchange.send({ ...outcome, text: isRecord(value) ? `{${members.join()}}` : deep })
    },
  }),
  'stale-reads': () => {
    const first = new Map<string, Outcome>()
    return {
      executes: true,
      answer(exchange, outcome) {
        const { method, url = '' } = exchange.request
        if (method !== 'GET') return exchange.send(outcome)
        const remembered = first.get(url) ?? outcome
        first.set(url, remembered)
        exchange.send(remembered)
      },
    }
  },
  'big-body': ({ megabytes = 64 }) => ({
    executes: true,
    answer({ response, head }) {
      head(200, JSON_TYPE)
      Readable.from(padding(megabytes))
        .on('error', () => {})
        .pipe(response)
    },
  }),
  'slow-headers': ({ ms = 1000 }) => ({
    executes: true,
    answer(exchange, outcome) {
      const cancel = exchange.timers.after(ms, () => exchange.send(outcome))
      exchange.response.once('close', cancel)
    },
  }),
  'dripping-body': ({ ms = 100, bytes = 1 }) => ({
    executes: true,
    answer(exchange, outcome) {
      exchange.head(outcome.status, outcome.headers)
      drip(exchange, Buffer.from(outcome.text), Math.max(1, bytes), ms)
    },
  }),
  'never-answer': () => ({ executes: false, answer() {} }),
  'execute-then-reset': () => ({ executes: true, answer: reset }),
  'reset-before-executing': () => ({ executes: false, answer: reset }),
  'gateway-page': ({ status = 502 }) =>
    foreign({ status, headers: { 'content-type': 'text/html' }, text: page(status) }),
  'portal-json': ({ status = 200, value = { error: 'starting up' } }) =>
    foreign({ status, headers: JSON_TYPE, text: JSON.stringify(value) }),
  'gateway-answer': ({ status = 200, text = '', type = 'application/json', executes = false }) =>
    foreign({ status, headers: { 'content-type': type }, text }, executes),
  redirect: ({ location = 'http://elsewhere.invalid/', status = 302 }) =>
    foreign({ status, headers: { location }, text: '' }),
}

function refuse({ status = 500, retryAfter, error, description }: FaultOptions['answer-status']): Fault {
  const refusal = new HubError(status, error ?? REASONS[status] ?? 'error', description ?? `The hub answers ${status}`)
  const headers = retryAfter === undefined ? JSON_TYPE : { ...JSON_TYPE, 'retry-after': String(retryAfter) }
  return worded(refusal, refusal.body(), headers)
}

function worded(refusal: HubError, body: object, headers: Outcome['headers'] = JSON_TYPE): Fault {
  const answer = { status: refusal.status, headers, text: JSON.stringify(body) }
  return { executes: false, refusal, answer: (exchange) => exchange.send(answer) }
}

export const subscriptionInactive = () => new HubError(403, 'Subscription Inactive', 'Subscription Inactive')

/** Not the hub answers, but something in between. */
function foreign(outcome: Outcome, executes = false): Fault {
  return { executes, answer: (exchange) => exchange.send({ ...outcome, foreign: true }) }
}

/** The hub's answer, changed where it is a JSON object. */
function altered(change: (answer: Record<string, unknown>) => unknown): Fault {
  return {
    executes: true,
    answer(exchange, outcome) {
      const value = parsed(outcome.text)
      exchange.send(isRecord(value) ? { ...outcome, text: JSON.stringify(change(value)) } : outcome)
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Counts requests within a sliding window; what is refused does not count. */
class RateLimit {
  readonly #requests: number
  readonly #windowMs: number
  #taken: number[] = []

  constructor(requests: number, windowMs: number) {
    this.#requests = requests
    this.#windowMs = windowMs
  }

  exceeds(now: number): boolean {
    this.#taken = this.#taken.filter((at) => now - at < this.#windowMs)
    if (this.#taken.length >= this.#requests) return true
    this.#taken.push(now)
    return false
  }
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'missing_scopes',
  404: 'not_found',
  429: 'too_many_requests',
  500: 'internal_error',
  503: 'unavailable',
}

function reset({ request }: Exchange): void {
  request.socket.resetAndDestroy()
}

function drip(exchange: Exchange, rest: Buffer, bytes: number, ms: number): void {
  const { response, timers } = exchange
  if (response.destroyed) return
  if (rest.length === 0) return void response.end()
  response.write(rest.subarray(0, bytes))
  timers.after(ms, () => drip(exchange, rest.subarray(bytes), bytes, ms))
}

/** Valid JSON to the last byte, so that only its size is wrong. */
function* padding(megabytes: number): Generator<string> {
  const block = 'x'.repeat(1024 * 64)
  yield '{"padding":"'
  for (let written = 0; written < megabytes * 16; written += 1) yield block
  yield '"}'
}

const page = (status: number) =>
  `<!doctype html><html><head><title>${status}</title></head><body><h1>${status}</h1><hr>gateway</body></html>\n`
