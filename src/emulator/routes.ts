/** Maps a request line, or a call over the realtime channel, to an endpoint and its parameters. */

import { isRecord } from '../base/json.ts'
import { withoutSlashes } from '../base/text.ts'
import { type Endpoint, METHODS } from './core/endpoint.ts'
import { APP_SECTION, type Entry, entriesFor, find, noSuchMethod } from './core/table.ts'
import { HubError } from './hub-error.ts'
import type { Flavour } from './records.ts'

/** The spellings of the base path that the hub answers; others are a 404. */
export type Prefix = 'manager' | 'managers' | 'both'

type Args = Readonly<Record<string, unknown>>

export interface Match extends Entry {
  /** The parameters by name. @throws HubError 400 for a body that cannot hold them */
  args(search: URLSearchParams, body: unknown): Args
}

/** The paths of an endpoint: a hub of the reference has only its own, others have both. */
function pathsOf({ path, alias }: Endpoint, flavour: Flavour): readonly string[] {
  if (alias === undefined) return [path]
  return flavour === 'reference' ? [alias] : [path, alias]
}

/** Finds the route of `/api/manager/<id>/…` or `/api/app/<id>/…` and decodes its parameters. @throws HubError */
export function matchRequest(method: string, path: string, prefix: Prefix, flavour: Flavour): Match {
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
    return { ...entry, args: (search, body) => ({ ...outside(entry, search, body), ...params }) }
  }
  throw noSuchMethod(flavour)
}

/** A request to an app's own web API: its path stays as received. */
function matchApp(method: string, path: string): Match {
  const [, id, rest = '/'] = path.match(/^\/api\/app\/([^/]+)(\/.*)?$/) ?? []
  if (id === undefined || !METHODS.some((one) => one === method)) throw notFound()
  const params = { id: decode(id), method, path: rest }
  return { ...APP_SECTION, args: (search, body) => ({ ...params, query: Object.fromEntries(search), body }) }
}

/** The parameters outside the path. */
function outside({ endpoint }: Entry, search: URLSearchParams, body: unknown): Args {
  const { method, takes, wholeBody } = endpoint
  if (method === 'GET' || method === 'DELETE') return Object.fromEntries(search)
  if (takes.length === 0) return {}
  if (body !== undefined && !isRecord(body)) throw noObject()
  if (wholeBody === undefined) return body ?? {}
  if (body === undefined) throw noObject()
  return { [wholeBody]: body }
}

/** Finds the endpoint of an `api` message `{uri, operation, args}`. @throws HubError */
export function matchMessage(message: unknown, flavour: Flavour): Entry & { args: Args } {
  if (!isRecord(message)) throw new HubError(400, 'invalid_message', 'The message has to be an object')
  const { uri, operation, args } = message
  const [, section = '', item = ''] = (typeof uri === 'string' ? uri : '').match(/^homey:(manager|app):(.+)$/) ?? []
  const named = typeof operation === 'string' ? operation : ''
  return find({ section, item, operation: named, args: isRecord(args) ? args : {} }, flavour)
}

const notFound = () => new HubError(404, 'not_found', 'Not Found')
const noObject = () => new HubError(400, 'invalid_body', 'The body has to be a JSON object')

/** The segments of a path that begins with a slash, without trailing slashes. */
export function split(path: string): string[] {
  return withoutSlashes(path).split('/').slice(1)
}

type Params = Readonly<Record<string, string>>

/**
 * The parameters of a path that matches the template, in which `:name` is a parameter; `undefined` if it does not
 * match.
 */
export function fill(template: readonly string[], segments: readonly string[]): Params | undefined {
  const isParameter = (part: string) => part.startsWith(':')
  const fits = (part: string, index: number) => isParameter(part) || part === segments[index]
  if (template.length !== segments.length || !template.every(fits)) return undefined
  return Object.fromEntries(
    template.flatMap((part, index) => (isParameter(part) ? [[part.slice(1), decode(segments[index] ?? '')]] : [])),
  )
}

/** @throws HubError 400 */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HubError(400, 'invalid_path', 'Malformed percent encoding')
  }
}
