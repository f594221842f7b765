/** A client that keeps the raw answers from a hub, because decoding could hide unusual content. */

import { sleep } from '../../base/clock.ts'
import { isRecord, type Json } from '../../base/json.ts'
import { type Answer, header, isGreeting, isPage, parse } from '../../hub/answer.ts'
import { HubError, type HubErrorCode } from '../../hub/errors.ts'
import { HttpClient } from '../../hub/http-client.ts'
import type { Method } from '../../hub/operations.ts'
import { lacksLicence } from '../../hub/refusal.ts'
import type { ConformanceOptions } from './conformance.ts'

/** Pause between two requests, because some hubs refuse faster requests. */
const PAUSE_MS = 200
const LIMITED_MS = 1500
const MAX_LIMITED_MS = 30_000

export interface Observation {
  /** The HTTP status; `null` if there was no answer. */
  readonly status: number | null
  /** Why there was no answer; `null` if there was one. */
  readonly failure: HubErrorCode | null
  readonly ms: number
  /** The id of the hub that answered. Reports must not contain it. */
  readonly id: string | null
  readonly firmware: string | null
  readonly retryAfter: string | null
  readonly content: 'json' | 'nothing' | 'text' | 'page'
  readonly value: Json | undefined
  /** Whether this is a valid answer to a ping. */
  readonly greets: boolean
}

const NONE = { ...seenOf({ status: 0, headers: {}, body: Buffer.alloc(0) }, 0), status: null }

export interface RequestInput {
  /** The key to send; default: the real key. */
  readonly show?: 'key' | 'unknown key' | 'no key'
  readonly body?: unknown
  /** The minimum time limit for the answer, in milliseconds. */
  readonly patienceMs?: number
}

const UNKNOWN_KEY = 'hub2mqtt-conformance-no-such-key'

export type Target = Pick<ConformanceOptions, 'url' | 'key' | 'timeoutMs' | 'clock'>

export function newClient({ url, key, timeoutMs, clock }: Target) {
  let shown = UNKNOWN_KEY
  let isFirst = true
  /** The hub to which the key may be sent, and the path of the hub's ping. */
  let hub: { readonly ping: string; readonly id: string | null } | undefined
  /** Whether every connection has stayed open since the hub identified itself. If not, another device may answer. */
  let isSure = true
  let proving: Promise<Observation | undefined> | undefined
  /** Whether the hub's answers contain its id. If so, a successful answer without it is from another server. */
  let signs = false
  const onDisconnected = () => {
    isSure = false
  }
  const http = new HttpClient({ url, timeoutMs, maxRequests: 2, onDisconnected, apiKey: () => shown }, clock)
  return { trust, prove, request, requestOnce, [Symbol.asyncDispose]: () => http.close() }

  function trust(ping: string, id: string | null): void {
    hub = { ping, id }
  }

  /** Pings the hub again if a connection was closed. Resolves to the failed ping if the key must not be sent. */
  function prove(): Promise<Observation | undefined> {
    if (isSure && hub !== undefined) return Promise.resolve(undefined)
    proving ??= requestIdentity().finally(() => {
      proving = undefined
    })
    return proving
  }

  async function requestIdentity(): Promise<Observation | undefined> {
    if (hub === undefined) throw new Error('No hub has identified itself.')
    const seen = await requestOnce('GET', hub.ping, { show: 'no key' })
    isSure = seen.greets && seen.id === hub.id
    if (isSure) return undefined
    return seen.status === 429 || seen.status === null ? seen : { ...NONE, failure: 'nonsense', ms: seen.ms }
  }

  /** Sends a request. After the status 429, waits for the time in Retry-After and sends it once more. */
  async function request(method: Method, path: string, options: RequestInput = {}): Promise<Observation> {
    if (!isFirst) await sleep(clock, PAUSE_MS)
    isFirst = false
    const seen = await requestOnce(method, path, options)
    if (seen.status !== 429) return seen
    const seconds = Number(seen.retryAfter)
    await sleep(clock, seconds > 0 ? Math.min(seconds * 1000, MAX_LIMITED_MS) : LIMITED_MS)
    return await requestOnce(method, path, options)
  }

  /** Returns whether another server or another hub sent the answer to a request with the real key. */
  function isForeign(seen: Observation): boolean {
    if (seen.id === null) return signs && isOk(seen)
    signs = true
    const known = hub?.id ?? null
    if (known === null || known === seen.id) return false
    isSure = false
    return true
  }

  async function requestOnce(
    method: Method,
    path: string,
    { show = 'key', body, patienceMs = 0 }: RequestInput = {},
  ): Promise<Observation> {
    const against = show === 'key' ? await prove() : undefined
    if (against !== undefined) return against
    const started = clock.elapsed()
    const ms = () => Math.round(clock.elapsed() - started)
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      shown = show === 'key' ? key : UNKNOWN_KEY
      const isKeyless = show === 'no key'
      const sending = { key: !isKeyless, isFresh: isKeyless, body: text, timeoutMs: Math.max(timeoutMs, patienceMs) }
      const seen = seenOf(await http.request(method, path, sending), ms())
      return show === 'key' && isForeign(seen) ? { ...NONE, failure: 'nonsense', ms: seen.ms } : seen
    } catch (error) {
      if (!(error instanceof HubError)) throw error
      return { ...NONE, failure: error.code, ms: ms() }
    }
  }
}
export type Client = ReturnType<typeof newClient>

function seenOf(answer: Answer, ms: number): Observation {
  const value = parse(answer)
  const content = isPage(answer) ? 'page' : answer.body.length === 0 ? 'nothing' : value === undefined ? 'text' : 'json'
  return {
    status: answer.status,
    failure: null,
    ms,
    id: header(answer, 'x-homey-id'),
    firmware: header(answer, 'x-homey-version'),
    retryAfter: header(answer, 'retry-after'),
    content,
    value,
    greets: isGreeting(answer),
  }
}

export type Outcome = 'ok' | 'absent' | 'refused' | 'limited' | 'rejected' | 'failed' | 'no_answer'

export function outcomeOf({ status, value }: Observation): Outcome {
  if (status === null) return 'no_answer'
  if (status >= 200 && status < 300) return 'ok'
  if (status === 404 || (status === 500 && errorOf(value) === 'missing_api_method')) return 'absent'
  if (status === 401 || status === 403) return 'refused'
  if (status === 429) return 'limited'
  return status < 500 ? 'rejected' : 'failed'
}

export const isOk = (seen: Observation | undefined): seen is Observation =>
  seen !== undefined && outcomeOf(seen) === 'ok'

export const recordOf = (seen: Observation | undefined): Record<string, unknown> | undefined =>
  isOk(seen) && isRecord(seen.value) ? seen.value : undefined

/** Returns the error code. Omits prose, which is in the household's language and may contain names. */
export function errorOf(value: unknown): string | null {
  const error = isRecord(value) ? value['error'] : undefined
  return typeof error === 'string' ? (/^[a-z][a-z0-9_]{0,40}$/.test(error) ? error : 'prose') : null
}

/** Describes an answer without names or values. */
export function summary({ status, failure, value }: Observation): string {
  const error = errorOf(value)
  return status === null
    ? `no answer (${failure})`
    : `${status}${error === null || error === 'prose' ? '' : ` ${error}`}`
}

/** The status codes of answers from a gateway or from a hub that is starting. */
const AWAY: ReadonlySet<number | null> = new Set([502, 503, 504])

/** Returns `true` if the hub was offline or busy, so that the answer shows nothing about the operation. */
export function isAway(seen: Observation): boolean {
  return AWAY.has(seen.status) || ['no_answer', 'limited'].includes(outcomeOf(seen))
}

/** Returns `true` if the hub refuses every request because it has no licence, whatever the request and the key are. */
export function isUnlicensed({ status, value }: Observation): boolean {
  return status === 403 && isRecord(value) && lacksLicence(`${value['error']} ${value['error_description']}`)
}

/** Returns the type of a value, for reports. The value itself may be a name or a secret. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'no JSON'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
