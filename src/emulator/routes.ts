/** From a request line, or a call over the realtime channel, to the endpoint it means and its parameters. */

import { isRecord } from '../base/json.ts'
import { withoutSlashes } from '../base/text.ts'
import { METHODS } from './core/endpoint.ts'
import { APP_SECTION, type Entry, entriesFor, find, noSuchMethod } from './core/table.ts'
import { HubError } from './hub-error.ts'
import { FLAVOURS, type Flavour } from './records.ts'

/** Which of the two spellings of the base path the hub answers; the other one is a 404. */
export type Prefix = 'manager' | 'managers' | 'both'

export type Args = Readonly<Record<string, unknown>>

export interface Match extends Entry {
  /** The parameters by name. @throws HubError 400 for a body that cannot hold them */
  args(search: URLSearchParams, body: unknown): Args
}

interface Route {
  readonly entry: Entry
  readonly segments: readonly string[]
}

function routesOf(flavour: Flavour): readonly Route[] {
  return entriesFor(flavour).flatMap((entry) => {
    const { path, alias } = entry.endpoint
    const own = { entry, segments: split(path) }
    if (alias === undefined) return [own]
    const other = { entry, segments: split(alias) }
    return flavour === 'reference' ? [other] : [own, other]
  })
}

const ROUTES: ReadonlyMap<Flavour, readonly Route[]> = new Map(FLAVOURS.map((flavour) => [flavour, routesOf(flavour)]))

/** Finds the route of `/api/manager/<id>/…` or `/api/app/<id>/…`, decoding what stands in the path. @throws HubError */
export function matchRequest(method: string, path: string, prefix: Prefix, flavour: Flavour): Match {
  const [api, section, item = '', ...rest] = split(path)
  if (api !== 'api') throw notFound()
  if (section === 'app') return matchApp(method, path)
  const served = prefix === 'both' ? ['manager', 'managers'] : [prefix]
  if (section === undefined || !served.includes(section)) throw notFound()
  for (const { entry, segments } of ROUTES.get(flavour) ?? []) {
    if (entry.endpoint.method !== method || entry.item !== item) continue
    const params = fill(segments, rest)
    if (params !== undefined)
      return { ...entry, args: (search, body) => ({ ...outside(entry, search, body), ...params }) }
  }
  throw noSuchMethod(flavour)
}

/** What an app's own web API is asked: its path stays as it came. */
function matchApp(method: string, path: string): Match {
  const [, id, rest = '/'] = path.match(/^\/api\/app\/([^/]+)(\/.*)?$/) ?? []
  if (id === undefined || !METHODS.some((one) => one === method)) throw notFound()
  const params = { id: decode(id), method, path: rest }
  return { ...APP_SECTION, args: (search, body) => ({ ...params, query: Object.fromEntries(search), body }) }
}

/** The parameters that do not stand in the path. */
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

/** The segments of a path that begins with a slash; those at the end do not count. */
export function split(path: string): string[] {
  return withoutSlashes(path).split('/').slice(1)
}

/** The parameters of a path that fits the template, where `:name` stands for one; `undefined` for one that does not. */
export function fill(
  template: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (template.length !== segments.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decode(segment)
    else if (part !== segment) return undefined
  }
  return params
}

/** @throws HubError 400 */
export function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HubError(400, 'invalid_path', 'Malformed percent encoding')
  }
}
