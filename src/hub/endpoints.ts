/**
 * A call of anything that a hub offers, named by section, item and path. It is read so strictly that it is certain
 * which operation of the table it is: a spelling that a hub may understand in another way is refused.
 */
import { isRecord, type Json } from '../base/json.ts'
import { HubError } from './errors.ts'
import { type Method, OPERATION_NAMES, OPERATIONS, type OperationName } from './operations.ts'

export const SECTIONS = ['manager', 'app'] as const
export type Section = (typeof SECTIONS)[number]

export interface EndpointCall {
  readonly section: Section
  /** A manager's id, or an app's. */
  readonly item: string
  readonly method: Method
  /** Below the item, with a slash in front; none for the item itself. */
  readonly path?: string | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly body?: Json | undefined
}

/** A call that was read. */
export interface Endpoint extends EndpointCall {
  /** Below the item, as it is sent; empty for the item itself. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** What the table calls it; `null` for what it does not know. */
  readonly operation: OperationName | null
  /** The operation's parameters, as the path has them. */
  readonly parameters: Readonly<Record<string, string>>
  /** The app that it is about, as far as its path or body says. */
  readonly app: string | null
}

const MAX_PATH = 512
const MAX_QUERY = 2048

/** @throws HubError `invalid_argument` if a hub could misinterpret the call */
export function readEndpoint(call: EndpointCall): Endpoint {
  const { section, item, method, path = '', query = {}, body } = call
  if (section === 'manager' && !/^[a-z][a-z0-9-]{0,63}$/.test(item))
    throw invalid('item: expected the id of a manager.')
  const segments = segmentsOf(path)
  checkQuery(query)
  if (method === 'GET' && body !== undefined) throw invalid('body: GET has none.')
  const known = section === 'manager' ? operationAt(item, method, segments) : undefined
  const parameters = known?.parameters ?? {}
  if (section === 'manager' && item === 'apps') agree(segments, parameters['name'], [query, body])
  return {
    section,
    item,
    method,
    path: path === '/' ? path : (known?.segments ?? segments).map((one) => `/${encodeURIComponent(one)}`).join(''),
    query,
    body,
    operation: known?.name ?? null,
    parameters,
    app: section === 'app' ? named(item) : appOf(item, segments, [query, body]),
  }
}

/** The path on a hub that spells the managers' root as `prefix`. */
export function pathOf({ section, item, path, query }: Endpoint, prefix: string): string {
  const root = section === 'manager' ? prefix : 'app'
  const search = new URLSearchParams(query).toString()
  return `/api/${root}/${encodeURIComponent(item)}${path}${search === '' ? '' : `?${search}`}`
}

/** Each segment decoded once. */
function segmentsOf(path: string): string[] {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/') || path.length > MAX_PATH)
    throw invalid(`path: expected / and at most ${MAX_PATH} characters.`)
  return path.slice(1).split('/').map(decoded)
}

function decoded(segment: string): string {
  try {
    return named(decodeURIComponent(segment))
  } catch {
    throw invalid('path: a part of it is empty, or not what every hub reads in the same way.')
  }
}

/** What ends a part of a path for some servers: slashes, parameters, the query, and what is decoded a second time. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
const AMBIGUOUS = /[/\\;?#\u0000-\u001f\u007f-\u009f]|%[0-9a-f]{2}|^\.{0,2}$|^\s|\s$/i

/** A name that no server takes for another one, nor for several. */
function named(name: string): string {
  if (!name.isWellFormed() || AMBIGUOUS.test(name.normalize('NFKC'))) {
    throw invalid('item: that names nothing.')
  }
  return name
}

/** A leading underscore may change what a request is: `_method=DELETE`. */
function checkQuery(query: Readonly<Record<string, string>>): void {
  if (Object.keys(query).some((key) => !/^[A-Za-z][\w.-]{0,63}$/.test(key))) {
    throw invalid('query: expected keys of letters, digits, _, . and -, the first one a letter.')
  }
  const tooLong = new URLSearchParams(query).toString().length > MAX_QUERY
  if (tooLong || Object.values(query).some((value) => !value.isWellFormed())) {
    throw invalid(`query: expected Unicode text, at most ${MAX_QUERY} characters in all.`)
  }
}

/** Hubs may take `/App/x/RESTART` for `/app/x/restart`. */
const fold = (text: string) => text.normalize('NFKC').toUpperCase().toLowerCase()

interface Known {
  readonly name: OperationName
  readonly parameters: Readonly<Record<string, string>>
  /** As the table spells them. */
  readonly segments: readonly string[]
}

function operationAt(item: string, method: Method, segments: readonly string[]): Known | undefined {
  for (const name of OPERATION_NAMES) {
    const { manager, method: its, path, otherPath = path } = OPERATIONS[name]
    if (manager !== item || its !== method) continue
    const found = match(path, segments) ?? match(otherPath, segments)
    if (found !== undefined) return { name, ...found }
  }
  return undefined
}

function match(template: string, segments: readonly string[]): Omit<Known, 'name'> | undefined {
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

/** The app that stands in a path of the app manager, whether or not the table knows the path. */
function appInPath(item: string, [first = '', id]: readonly string[]): string | undefined {
  return item === 'apps' && fold(first) === 'app' ? id : undefined
}

function appOf(item: string, segments: readonly string[], given: readonly unknown[]): string | null {
  if (item !== 'apps') return null
  const inPath = appInPath(item, segments)
  const elsewhere = given.map((one) => (isRecord(one) ? one['id'] : undefined)).find((id) => id !== undefined)
  return inPath ?? (typeof elsewhere === 'string' ? elsewhere : null)
}

/** A hub may read a parameter from path, query or body: wherever it stands it must be the same one. */
function agree(segments: readonly string[], name: string | undefined, given: readonly unknown[]): void {
  const records = given.filter(isRecord)
  const found = (key: string, inPath: string | undefined) =>
    new Set([inPath, ...records.map((record) => record[key])].filter((value) => value !== undefined))
  const ids = found('id', appInPath('apps', segments))
  const names = name === undefined ? new Set() : found('name', name)
  if (ids.size > 1 || names.size > 1 || [...ids].some((id) => typeof id !== 'string')) {
    throw invalid('query and body: expected the app and the setting of the path.')
  }
}

function invalid(message: string): HubError {
  return new HubError('invalid_argument', message)
}
