/** Validates calls to any endpoint. Rejects paths and queries that a hub might parse differently from hub2mqtt. */
import { isRecord, type Json } from '../base/json.ts'
import { HubError } from './errors.ts'
import { type Method, OPERATION_NAMES, OPERATIONS, type OperationName } from './operations.ts'

export const SECTIONS = ['manager', 'app'] as const
export type Section = (typeof SECTIONS)[number]

export interface EndpointCall {
  readonly section: Section
  /** The id of a manager or an app. */
  readonly item: string
  readonly method: Method
  /** The path below the item, with a leading slash; omitted for the item itself. */
  readonly path?: string | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly body?: Json | undefined
}

export interface Endpoint extends EndpointCall {
  /** The path as sent; empty for the item itself. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** The operation that the call matches; `null` if the call matches none of `OPERATIONS`. */
  readonly operation: OperationName | null
  /** The parameters in the operation's path. */
  readonly parameters: Readonly<Record<string, string>>
  /** The app that the path, query or body names. */
  readonly app: string | null
}

const MAX_PATH = 512
const MAX_QUERY = 2048

/** Validates a call. @throws HubError `invalid_argument` if a hub could misinterpret the call */
export function readEndpoint(call: EndpointCall): Endpoint {
  const { section, item, method, path = '', query = {}, body } = call
  if (section === 'manager' && !/^[a-z][a-z0-9-]{0,63}$/.test(item))
    throw invalid('item: expected the id of a manager.')
  const segments = segmentsOf(path)
  checkQuery(query)
  if (method === 'GET' && body !== undefined) throw invalid('body: not allowed with GET.')
  const known = section === 'manager' ? operationAt(item, method, segments) : undefined
  const parameters = known?.parameters ?? {}
  const isOfApps = section === 'manager' && item === 'apps'
  return {
    section,
    item,
    method,
    path: path === '/' ? path : (known?.segments ?? segments).map((one) => `/${encodeURIComponent(one)}`).join(''),
    query,
    body,
    operation: known?.name ?? null,
    parameters,
    app: section === 'app' ? checkedName(item) : isOfApps ? appOf(segments, parameters['name'], [query, body]) : null,
  }
}

/** Returns the endpoint's path and query. @param prefix the hub's API root for managers */
export function pathOf({ section, item, path, query }: Endpoint, prefix: string): string {
  const root = section === 'manager' ? prefix : 'app'
  const search = new URLSearchParams(query).toString()
  return `/api/${root}/${encodeURIComponent(item)}${path}${search === '' ? '' : `?${search}`}`
}

function segmentsOf(path: string): string[] {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/') || path.length > MAX_PATH)
    throw invalid(`path: expected / and at most ${MAX_PATH} characters.`)
  return path.slice(1).split('/').map(decoded)
}

function decoded(segment: string): string {
  try {
    return checkedName(decodeURIComponent(segment))
  } catch {
    throw invalid('path: a segment is empty, or hubs might read it differently.')
  }
}

/** Matches segments that servers may split, trim or decode differently. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters.
const AMBIGUOUS = /[/\\;?#\u0000-\u001f\u007f-\u009f]|%[0-9a-f]{2}|^\.{0,2}$|^\s|\s$/i

function checkedName(name: string): string {
  if (!name.isWellFormed() || AMBIGUOUS.test(name.normalize('NFKC'))) {
    throw invalid('item: it is empty, or hubs might read it differently.')
  }
  return name
}

/** Rejects, for example, keys with a leading underscore: `_method=DELETE` may change the request. */
function checkQuery(query: Readonly<Record<string, string>>): void {
  if (Object.keys(query).some((key) => !/^[A-Za-z][\w.-]{0,63}$/.test(key))) {
    throw invalid('query: expected keys of letters, digits, _, . and -, the first one a letter.')
  }
  const tooLong = new URLSearchParams(query).toString().length > MAX_QUERY
  if (tooLong || Object.values(query).some((value) => !value.isWellFormed())) {
    throw invalid(`query: expected Unicode text, at most ${MAX_QUERY} characters in all.`)
  }
}

/** Makes different spellings equal, because hubs may read `/App/x/RESTART` as `/app/x/restart`. */
const fold = (text: string) => text.normalize('NFKC').toUpperCase().toLowerCase()

function operationAt(item: string, method: Method, segments: readonly string[]) {
  for (const name of OPERATION_NAMES) {
    const { manager, method: its, path, otherPath = path } = OPERATIONS[name]
    if (manager !== item || its !== method) continue
    const found = match(path, segments) ?? match(otherPath, segments)
    if (found !== undefined) return { name, ...found }
  }
  return undefined
}

/** Returns the parameters, and the segments as spelled in the template; `undefined` if the segments do not match. */
function match(template: string, segments: readonly string[]) {
  const parts = template.split('/').filter((part) => part !== '')
  if (parts.length !== segments.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [index, part] of parts.entries()) {
    const segment = segments[index] ?? ''
    if (part.startsWith(':')) parameters[part.slice(1)] = segment
    else if (fold(part) !== fold(segment)) return undefined
  }
  return { parameters, segments: parts.map((part, index) => (part.startsWith(':') ? (segments[index] ?? '') : part)) }
}

/**
 * Returns the app that a call names, even if `OPERATIONS` lacks the call's path. A hub may read a parameter from the
 * path, query or body, so its values must be the same everywhere.
 */
function appOf(segments: readonly string[], name: string | undefined, given: readonly unknown[]): string | null {
  const [first = '', idInPath] = segments
  const records = given.filter(isRecord)
  const found = (key: string, inPath: string | undefined) =>
    new Set([inPath, ...records.map((record) => record[key])].filter((value) => value !== undefined))
  const ids = found('id', fold(first) === 'app' ? idInPath : undefined)
  const names = name === undefined ? new Set() : found('name', name)
  const [id] = ids
  if (ids.size > 1 || names.size > 1 || (id !== undefined && typeof id !== 'string')) {
    throw invalid('query and body: expected the same app and setting as in the path.')
  }
  return id ?? null
}

function invalid(message: string): HubError {
  return new HubError('invalid_argument', message)
}
