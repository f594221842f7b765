/** The ways an HTTP answer goes wrong. Each is one row: whether the request is carried out, and what comes back. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { HubError } from './hub-error.ts'
import type { Timers } from './timers.ts'

export interface FaultOptions {
  /** A refusal: 401, 403, 404, 429, 500, 503 … with `Retry-After` in seconds, and in these words, where given. */
  'answer-status': { status?: number; retryAfter?: number; description?: string }
  /** Says that all is well, with `value` as its answer, and does nothing. */
  pretend: { value?: unknown }
  'not-json': { text?: string }
  /** The answer without its second half. */
  'truncated-json': object
  /** JSON, but not what was asked for. */
  'wrong-shape': { value?: unknown }
  /** An empty list of apps. */
  'empty-list': object
  'big-body': { megabytes?: number }
  /** Carried out at once, answered `ms` later. */
  'slow-headers': { ms?: number }
  /** `bytes` of the answer every `ms`. */
  'dripping-body': { ms?: number; bytes?: number }
  /** Takes the request and never says anything. */
  'never-answer': object
  /** Carries the request out, then resets the connection: the client cannot know. */
  'execute-then-reset': object
  /** Resets the connection; nothing was done. */
  'reset-before-executing': object
  /** The HTML page of a gateway in between, 502 or 404. */
  'gateway-page': { status?: number }
}

export type FaultName = keyof FaultOptions

/** A finished answer, before any fault has touched it. */
export interface Outcome {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
}

/** What a fault works with: the request, and `send`, which is how every ordinary answer leaves. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  timers: Timers
  /** Writes the head only, remembering the status. */
  head(status: number, headers: Readonly<Record<string, string>>): void
  send(outcome: Outcome): void
}

export interface Fault {
  executes: boolean
  /** Set where the fault is a plain refusal, which the realtime channel can word too. */
  refusal?: HubError
  answer(exchange: Exchange, outcome: Outcome): void
}

export const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

export const FAULTS: { [N in FaultName]: (options: FaultOptions[N]) => Fault } = {
  'answer-status': ({ status = 500, retryAfter, description = `The hub answers ${status}` }) => {
    const refusal = new HubError(status, REASONS[status] ?? 'error', description)
    const headers = retryAfter === undefined ? JSON_TYPE : { ...JSON_TYPE, 'retry-after': String(retryAfter) }
    const text = JSON.stringify(refusal.body())
    return { executes: false, refusal, answer: (exchange) => exchange.send({ status, headers, text }) }
  },
  pretend: ({ value = null }) => ({
    executes: false,
    answer: (exchange) => exchange.send({ status: 200, headers: JSON_TYPE, text: JSON.stringify(value) }),
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
  'gateway-page': ({ status = 502 }) => ({
    executes: false,
    answer: (exchange) => exchange.send({ status, headers: { 'content-type': 'text/html' }, text: page(status) }),
  }),
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
