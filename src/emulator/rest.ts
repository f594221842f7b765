/** The hub's HTTP API: routes each request to an endpoint and sends the answer, with any simulated fault. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isRecord } from '../base/json.ts'
import { withoutSlashes } from '../base/text.ts'
import type { Behaviours } from './behaviours.ts'
import { type Core, type Endpoint, METHODS } from './core/endpoint.ts'
import { APP_SECTION, type Entry, entriesFor, find, noSuchMethod } from './core/table.ts'
import { type Exchange, type Fault, JSON_TYPE, type Outcome } from './faults.ts'
import { asHubError, HubError } from './hub-error.ts'
import type { AppRecord, Flavour } from './records.ts'
import { admit, type Keys } from './scopes.ts'
import type { Timers } from './timers.ts'

/** The answer to an operation that returns nothing. */
export type Nothing = 'null' | 'empty' | '204'

export interface RequestRecord {
  readonly at: number
  readonly via: 'rest' | 'socket'
  /** HTTP method; `API` for a call over the realtime channel, `EMIT` for the channel's own messages. */
  readonly method: string
  /** The request target as received; on the realtime channel, the message, such as `subscribe homey:manager:apps`. */
  readonly path: string
  readonly operation?: string | undefined
  readonly key?: string | undefined
  readonly body?: unknown
  /** The status of the answer. It is missing before the answer is sent, or if a fault suppressed the answer. */
  readonly status?: number
  /** Whether the request was executed, even if the answer was lost; missing if the request is not an operation. */
  readonly executed?: boolean
}

/** A request record that is still being written. */
export type OpenRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] }

export interface HubCore extends Core {
  readonly keys: Keys
  readonly behaviours: Behaviours
  readonly timers: Timers
  readonly prefix: Prefix
  readonly nothing: Nothing
  /** The rate limit; `undefined` if there is none. */
  readonly limit: Fault | undefined
  remember(entry: Omit<OpenRecord, 'at'>): OpenRecord
}

const MAX_BODY = 1024 * 1024

export function restListener(hub: HubCore): RequestListener {
  return (request, response) => {
    response.on('error', () => {})
    // `serve` rejects if the client disconnected while the body was being read, so no answer is possible.
    serve(hub, request, response).catch(() => response.destroy())
  }
}

async function serve(hub: HubCore, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url: target = '' } = request
  const [path = '', ...search] = target.split('?')
  const upload = await readBody(request)
  const body = attempt(() => parseBody(upload))
  const match = attempt(() => matchRequest(method, path, hub.prefix, hub.flavour))
  const key = bearer(request.headers.authorization)
  const entry = hub.remember({
    via: 'rest',
    method,
    path: target,
    ...(match instanceof HubError ? {} : { operation: match.name }),
    ...(key === undefined ? {} : { key }),
    body: body instanceof HubError ? upload : body,
  })
  const exchange = open(hub, request, response, entry)
  const fault = claimFault(hub, entry.operation, 'rest')
  entry.executed = false
  const icon = method === 'GET' ? iconAt(path, hub.apps.records) : undefined
  const execute = async () => {
    const done =
      icon === undefined
        ? await outcome(hub, match, key, new URLSearchParams(search.join('?')), body)
        : { status: 200, headers: { 'content-type': 'image/svg+xml' }, text: icon }
    entry.executed = done.status < 300
    return done
  }
  if (fault === undefined) return exchange.send(await execute())
  fault.answer(exchange, fault.executes ? await execute() : NOT_DONE)
}

/** Returns the fault for a request, if any: the rate limit, or an active behaviour, which counts as used once. */
export function claimFault(hub: HubCore, operation: string | undefined, via: 'rest' | 'socket'): Fault | undefined {
  const now = hub.clock.elapsed()
  return hub.limit?.meets?.(now) ? hub.limit : hub.behaviours.claimFault(operation, via, now)
}

const NOT_DONE: Outcome = { status: 200, headers: JSON_TYPE, text: 'null' }

function open(hub: HubCore, request: IncomingMessage, response: ServerResponse, entry: OpenRecord): Exchange {
  const identity = identityHeaders(hub, entry.operation)
  const head: Exchange['head'] = (status, headers, foreign) => {
    entry.status = status
    response.writeHead(status, { ...headers, ...(foreign ? {} : identity) })
  }
  const send = ({ status, headers, text, foreign }: Outcome) => {
    if (response.destroyed) return
    const bodiless = status === 204
    head(status, bodiless ? {} : { ...headers, 'content-length': String(Buffer.byteLength(text)) }, foreign)
    response.end(bodiless ? undefined : text)
  }
  return { request, response, timers: hub.timers, head, send }
}

function identityHeaders({ behaviours, flavour, id, version }: HubCore, operation: string | undefined) {
  const claimed = behaviours.claimIdentity(operation)
  if (claimed === null || flavour === 'reference') return {}
  return { 'x-homey-id': claimed?.id ?? id, 'x-homey-version': claimed?.version ?? version }
}

async function outcome(
  hub: HubCore,
  match: Match | HubError,
  key: string | undefined,
  search: URLSearchParams,
  body: unknown,
): Promise<Outcome> {
  try {
    if (match instanceof HubError) throw match
    const scopes = admit(hub.keys, key, match.endpoint.needs)
    if (body instanceof HubError) throw body
    const result = await match.endpoint.perform(hub, match.args(search, body), { scopes })
    return result === undefined ? nothing(hub.nothing) : json(200, result)
  } catch (thrown) {
    const refusal = asHubError(thrown)
    return json(refusal.status, refusal.body())
  }
}

const json = (status: number, value: unknown): Outcome => ({ status, headers: JSON_TYPE, text: JSON.stringify(value) })

function nothing(form: Nothing): Outcome {
  return { status: form === '204' ? 204 : 200, headers: JSON_TYPE, text: form === 'null' ? 'null' : '' }
}

const bearer = (header: string | undefined): string | undefined => header?.match(/^Bearer (.+)$/i)?.[1]

export async function readBody(request: IncomingMessage): Promise<string | HubError> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk)
    length += bytes.length
    if (length <= MAX_BODY) chunks.push(bytes)
  }
  if (length > MAX_BODY) return new HubError(413, 'too_large', 'Request Entity Too Large')
  return Buffer.concat(chunks).toString('utf8')
}

function parseBody(upload: string | HubError): unknown {
  if (upload instanceof HubError) throw upload
  if (upload.trim() === '') return undefined
  try {
    return JSON.parse(upload)
  } catch {
    throw new HubError(400, 'invalid_json', 'The body is not JSON')
  }
}

/** Returns a refusal instead of throwing it, so that the route and the key are checked before the body is refused. */
function attempt<T>(task: () => T): T | HubError {
  try {
    return task()
  } catch (thrown) {
    return asHubError(thrown)
  }
}

const COLOUR = /^#[0-9a-f]{6}$/i

/** Returns the SVG icon of the app whose record contains this path, if there is one. No key is needed. */
function iconAt(path: string, records: ReadonlyMap<string, AppRecord>): string | undefined {
  for (const record of records.values()) {
    const { icon, iconObj, name, brandColor } = record
    const paths = [isRecord(iconObj) ? iconObj['url'] : undefined, icon]
    if (!paths.includes(path)) continue
    const colour = typeof brandColor === 'string' && COLOUR.test(brandColor) ? brandColor : '#4A6572'
    const initial = typeof name === 'string' ? (/[a-z]/i.exec(name)?.[0] ?? '') : ''
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 960"><circle cx="480" cy="480" r="440" fill="${colour}"/><text x="480" y="660" font-family="sans-serif" font-size="520" text-anchor="middle" fill="#fff">${initial}</text></svg>`
  }
  return undefined
}

/** The accepted spelling of the base path. Other spellings get 404. */
export type Prefix = 'manager' | 'managers' | 'both'

type Args = Readonly<Record<string, unknown>>

interface Match extends Entry {
  /** Returns the parameters in a query or a body. @throws HubError 400 for a body that cannot contain parameters */
  args(search: URLSearchParams, body: unknown): Args
}

/** Returns the paths of an endpoint. `reference` accepts only the documented path, the other flavours accept both. */
function pathsOf({ path, alias }: Endpoint, flavour: Flavour): readonly string[] {
  if (alias === undefined) return [path]
  return flavour === 'reference' ? [alias] : [path, alias]
}

/** Finds the route of `/api/manager/<id>/…` or `/api/app/<id>/…` and decodes its parameters. @throws HubError */
function matchRequest(method: string, path: string, prefix: Prefix, flavour: Flavour): Match {
  const [api, section, item = '', ...rest] = split(path)
  if (api !== 'api') throw notFound()
  if (section === 'app') return matchApp(method, path)
  const served = prefix === 'both' ? ['manager', 'managers'] : [prefix]
  if (section === undefined || !served.includes(section)) throw notFound()
  for (const entry of entriesFor(flavour)) {
    if (entry.endpoint.method !== method || entry.item !== item) continue
    const found = pathsOf(entry.endpoint, flavour).map((one) => fill(split(one), rest))
    const params = found.find((one) => one !== undefined)
    if (params === undefined) continue
    return { ...entry, args: (search, body) => ({ ...otherParams(entry, search, body), ...params }) }
  }
  throw noSuchMethod(flavour)
}

/** Matches a request to an app's own web API. The app itself decodes the path. */
function matchApp(method: string, path: string): Match {
  const [, id, rest = '/'] = path.match(/^\/api\/app\/([^/]+)(\/.*)?$/) ?? []
  if (id === undefined || !METHODS.some((one) => one === method)) throw notFound()
  const params = { id: decode(id), method, path: rest }
  return { ...APP_SECTION, args: (search, body) => ({ ...params, query: Object.fromEntries(search), body }) }
}

function otherParams({ endpoint }: Entry, search: URLSearchParams, body: unknown): Args {
  const { method, accepts, wholeBody } = endpoint
  if (method === 'GET' || method === 'DELETE') return Object.fromEntries(search)
  if (accepts.length === 0) return {}
  if (body !== undefined && !isRecord(body)) throw noObject()
  if (wholeBody === undefined) return body ?? {}
  if (body === undefined) throw noObject()
  return { [wholeBody]: body }
}

/** Finds the endpoint of an `api` message `{uri, operation, args}`. @throws HubError */
export function matchMessage(message: unknown, flavour: Flavour): Entry & { args: Args } {
  if (!isRecord(message)) throw new HubError(400, 'invalid_message', 'The message must be an object')
  const { uri, operation, args } = message
  const [, section = '', item = ''] = (typeof uri === 'string' ? uri : '').match(/^homey:(manager|app):(.+)$/) ?? []
  const named = typeof operation === 'string' ? operation : ''
  return find({ section, item, operation: named, args: isRecord(args) ? args : {} }, flavour)
}

const notFound = () => new HubError(404, 'not_found', 'Not Found')
const noObject = () => new HubError(400, 'invalid_body', 'The body must be a JSON object')

/** Returns the segments of a path. Ignores trailing slashes. */
export const split = (path: string): string[] => withoutSlashes(path).split('/').slice(1)

type Params = Readonly<Record<string, string>>

/** Returns the parameters in a path, such as `:name` in the template; `undefined` if the path does not match. */
export function fill(template: readonly string[], segments: readonly string[]): Params | undefined {
  const isParameter = (part: string) => part.startsWith(':')
  const fits = (part: string, index: number) => isParameter(part) || part === segments[index]
  if (template.length !== segments.length || !template.every(fits)) return undefined
  return Object.fromEntries(
    template.flatMap((part, index) => (isParameter(part) ? [[part.slice(1), decode(segments[index] ?? '')]] : [])),
  )
}

/** Decodes a segment of a path. @throws HubError 400 if its percent-encoding is invalid */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HubError(400, 'invalid_path', 'Malformed percent encoding')
  }
}
