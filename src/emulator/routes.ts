/** From a request line, or a call over the realtime channel, to the operation it means. */

import { isRecord } from '../base/json.ts'
import { HubError } from './hub-error.ts'
import { type Call, OPERATIONS, type Operation, type OperationName } from './operations.ts'
import type { Flavour } from './records.ts'

/** Which of the two spellings of the base path the hub answers; the other one is a 404. */
export type Prefix = 'manager' | 'managers' | 'both'

export interface Match {
  name: OperationName
  operation: Operation
  params: Call['params']
}

interface Route extends Omit<Match, 'params'> {
  method: string
  segments: readonly string[]
  /** Whether the reference has this path. */
  reference: boolean
}

const isOperationName = (name: string): name is OperationName => Object.hasOwn(OPERATIONS, name)

const ROUTES: readonly Route[] = Object.keys(OPERATIONS)
  .filter(isOperationName)
  .flatMap((name) => {
    const operation: Operation = OPERATIONS[name]
    const { method, path, alias } = operation
    const route = { name, operation, method, segments: split(path), reference: alias === undefined }
    return alias === undefined ? [route] : [route, { ...route, segments: split(alias), reference: true }]
  })

/** Segments of a path; trailing slashes do not count, since hubs of different age write them differently. */
function split(path: string): string[] {
  return path.replace(/\/+$/, '').split('/').slice(1)
}

/** Finds the route of `/api/manager/<id>/…`, decoding what stands in the path. Throws 400 or 404. */
export function matchRequest(method: string, path: string, prefix: Prefix, flavour: Flavour): Match {
  const [api, spelling, manager, ...rest] = split(path)
  const served = prefix === 'both' ? ['manager', 'managers'] : [prefix]
  if (api !== 'api' || spelling === undefined || !served.includes(spelling)) throw noRoute()
  for (const route of ROUTES) {
    if (route.method !== method || route.operation.manager !== manager || !serves(route.operation, flavour)) continue
    if (flavour === 'reference' && !route.reference) continue
    const params = fill(route.segments, rest)
    if (params !== undefined) return { name: route.name, operation: route.operation, params }
  }
  throw noRoute()
}

/** Finds the operation of an `api` message `{uri, operation, args}` and turns its arguments into a request. */
export function matchMessage(message: unknown, flavour: Flavour): Match & Pick<Call, 'query' | 'body'> {
  if (!isRecord(message)) throw new HubError(400, 'invalid_message', 'The message has to be an object')
  const name = typeof message['operation'] === 'string' ? message['operation'] : ''
  if (!isOperationName(name)) throw noRoute()
  const operation: Operation = OPERATIONS[name]
  if (message['uri'] !== `homey:manager:${operation.manager}` || !serves(operation, flavour)) throw noRoute()
  const args = isRecord(message['args']) ? message['args'] : {}
  return {
    name,
    operation,
    params: { id: argument(operation, args, 'id'), name: argument(operation, args, 'name') },
    query: new Map(Object.entries(args).map(([key, value]) => [key, String(value)])),
    body: operation.bodyArgument === undefined ? args : args[operation.bodyArgument],
  }
}

const serves = (operation: Operation, flavour: Flavour) => operation.only?.includes(flavour) ?? true

const noRoute = () => new HubError(404, 'not_found', 'Not Found')

function argument(operation: Operation, args: Record<string, unknown>, name: string): string {
  if (!operation.path.split('/').includes(`:${name}`)) return ''
  const value = args[name]
  if (typeof value === 'string') return value
  throw new HubError(400, 'missing_parameter', `Missing Parameter: ${name}`)
}

function fill(template: readonly string[], segments: readonly string[]): Match['params'] | undefined {
  if (template.length !== segments.length) return undefined
  const params = { id: '', name: '' }
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? ''
    if (part === ':id') params.id = decode(segment)
    else if (part === ':name') params.name = decode(segment)
    else if (part !== segment) return undefined
  }
  return params
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HubError(400, 'invalid_path', 'Malformed percent encoding')
  }
}
