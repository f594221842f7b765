/** Faults in HTTP answers. A fault decides whether the request is executed, and what the client receives. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { isRecord, parseJson } from '../base/json.ts'
import { HubError } from './hub-error.ts'
import type { Timers } from './timers.ts'

export interface Outcome {
  status: number
  headers: Readonly<Record<string, string>>
  text: string
  /** Set to imitate another server. The answer then lacks the headers that identify the hub. */
  foreign?: true
}

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  timers: Timers
  head(status: number, headers: Readonly<Record<string, string>>, foreign?: true): void
  send(outcome: Outcome): void
}

export interface Fault {
  executes: boolean
  /** Set if the fault is a plain refusal, which the realtime channel can also send. */
  refusal?: HubError
  /** Whether the fault affects this request; default: all requests. `now`: monotonic milliseconds. */
  meets?(now: number): boolean
  answer(exchange: Exchange, outcome: Outcome): void
}

export const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

const REASONS: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'missing_scopes',
  404: 'not_found',
  429: 'too_many_requests',
  500: 'internal_error',
  503: 'unavailable',
}

interface Refusal {
  readonly status?: number | undefined
  readonly retryAfter?: number | undefined
  readonly error?: string | undefined
  readonly description?: string | undefined
}

export function refuse({ status = 500, retryAfter, error, description }: Refusal): Fault {
  const refusal = new HubError(status, error ?? REASONS[status] ?? 'error', description ?? `The hub answers ${status}`)
  const headers = retryAfter === undefined ? JSON_TYPE : { ...JSON_TYPE, 'retry-after': String(retryAfter) }
  return worded(refusal, refusal.body(), headers)
}

export const subscriptionInactive = () => new HubError(403, 'Subscription Inactive', 'Subscription Inactive')

export function replaced(answer: Outcome, executes = false): Fault {
  return { executes, answer: (exchange) => exchange.send(answer) }
}

export function worded(refusal: HubError, body: object, headers: Outcome['headers'] = JSON_TYPE): Fault {
  return { ...replaced({ status: refusal.status, headers, text: JSON.stringify(body) }), refusal }
}

interface Rate extends Pick<Refusal, 'retryAfter'> {
  readonly requests?: number | undefined
  readonly windowMs?: number | undefined
}

/** Limits the requests within a sliding window. Refused requests do not count. */
export function rateLimit({ requests = 4, windowMs = 500, retryAfter }: Rate): Fault {
  let accepted: number[] = []
  const meets = (now: number) => {
    accepted = accepted.filter((at) => now - at < windowMs)
    if (accepted.length >= requests) return true
    accepted.push(now)
    return false
  }
  return { ...refuse({ status: 429, retryAfter }), meets }
}

/** Replaces the hub's answer with the answer of a server in front of the hub, such as a gateway. */
export function foreign(status: number, headers: Outcome['headers'], text: string, executes = false): Fault {
  return replaced({ status, headers, text, foreign: true }, executes)
}

export const gatewayPage = (status: number) =>
  `<!doctype html><html><head><title>${status}</title></head><body><h1>${status}</h1><hr>gateway</body></html>\n`

const executed = (answer: Fault['answer']): Fault => ({ executes: true, answer })

export const reworded = (change: (text: string) => string) =>
  executed((exchange, outcome) => exchange.send({ ...outcome, text: change(outcome.text) }))

export function altered(change: (answer: Record<string, unknown>) => unknown): Fault {
  return reworded((text) => {
    const value = parseJson(text)
    return isRecord(value) ? JSON.stringify(change(value)) : text
  })
}

/** Replaces each value of the answer's object, or an answer that is not an object, with deeply nested arrays. */
export function deepJson(levels: number): Fault {
  const deep = '['.repeat(levels) + ']'.repeat(levels)
  return reworded((text) => {
    const value = parseJson(text)
    return isRecord(value) ? `{${Object.keys(value).map((key) => `${JSON.stringify(key)}:${deep}`)}}` : deep
  })
}

export function renamed(answer: Record<string, unknown>, suffix: string): unknown {
  const rename = (value: unknown) => (isRecord(value) ? { ...value, id: `${String(value['id'])}${suffix}` } : value)
  if (Object.hasOwn(answer, 'id')) return rename(answer)
  return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, rename(value)]))
}

export function staleReads(): Fault {
  const first = new Map<string, Outcome>()
  return executed((exchange, outcome) => {
    const { method, url = '' } = exchange.request
    if (method !== 'GET') return exchange.send(outcome)
    const remembered = first.get(url) ?? outcome
    first.set(url, remembered)
    exchange.send(remembered)
  })
}

export function bigBody(megabytes: number): Fault {
  return executed(({ response, head }) => {
    head(200, JSON_TYPE)
    Readable.from(padding(megabytes))
      .on('error', () => {})
      .pipe(response)
  })
}

/** Generates a large answer of complete and valid JSON, so that only its size is a problem. */
function* padding(megabytes: number): Generator<string> {
  const block = 'x'.repeat(1024 * 64)
  yield '{"padding":"'
  for (let written = 0; written < megabytes * 16; written += 1) yield block
  yield '"}'
}

export function slowHeaders(ms: number): Fault {
  return executed((exchange, outcome) => {
    const cancel = exchange.timers.after(ms, () => exchange.send(outcome))
    exchange.response.once('close', cancel)
  })
}

export function drippingBody(ms: number, bytes: number): Fault {
  const drip = (exchange: Exchange, rest: Buffer) => {
    const { response, timers } = exchange
    if (response.destroyed) return
    if (rest.length === 0) return void response.end()
    response.write(rest.subarray(0, bytes))
    timers.after(ms, () => drip(exchange, rest.subarray(bytes)))
  }
  return executed((exchange, { status, headers, text }) => {
    exchange.head(status, headers)
    drip(exchange, Buffer.from(text))
  })
}

export function reset(executes: boolean): Fault {
  return { executes, answer: ({ request }) => void request.socket.resetAndDestroy() }
}
