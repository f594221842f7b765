/** Defines an endpoint of the hub, for REST, the realtime channel, the in-app interface and the documentation. */
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import type { PathInput } from '../../base/text.ts'
import { HubError } from '../hub-error.ts'
import type { Flavour } from '../records.ts'
import type { Needs } from '../scopes.ts'
import type { HubApps } from './hub-apps.ts'
import type { HubStore } from './hub-store.ts'

export interface Core {
  readonly id: string
  readonly version: string
  readonly flavour: Flavour
  readonly apps: HubApps
  readonly store: HubStore
  /** Returns the time since the hub started, in milliseconds. */
  uptime(): number
  readonly clock: Clock
  /** Running apps whose devices are unavailable. */
  readonly away: ReadonlySet<string>
  speak(text: string): void | Promise<void>
  /** Sends an event of the manager or app with this URI, such as `homey:manager:apps`. */
  sendEvent(uri: string, event: string, payload: unknown): void
}

export interface Caller {
  /** The permissions of the caller, spelled `homey.…`. */
  readonly scopes: readonly string[]
  /** The calling app; if missing, the caller is a client with a key. */
  readonly app?: string
}

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const
export type Method = (typeof METHODS)[number]
/** A method and a path, such as `GET /app/:id`, in which `:id` is a percent-encoded parameter. */
export type Request = `${Method} /${string}`

export type Input<R extends Request, E extends v.ObjectEntries> = PathInput<R> &
  v.InferOutput<v.ObjectSchema<E, undefined>>

export const inPath = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)

type Args = Readonly<Record<string, unknown>>

/** Returns the method and the path of a request, and `read`, which validates the parameters. */
export function requestOf(request: Request, accepts: v.ObjectEntries) {
  const method = METHODS.find((one) => request.startsWith(`${one} `)) ?? 'GET'
  const input = v.object({ ...Object.fromEntries(inPath(request).map((name) => [name, v.string()])), ...accepts })
  return { method, path: request.slice(method.length + 1), read: (args: Args) => checked(input, args) }
}

interface Declared {
  /** The path in the API documentation, if it differs. The flavour `reference` accepts only this path, others both. */
  readonly alias?: string
  /** Set if apps need no permission, because the endpoint concerns only the calling app. */
  readonly own?: true
  /** The flavours that have the endpoint; default: all. */
  readonly only?: readonly Flavour[]
  /** The name of the parameter to which the whole body is assigned. */
  readonly wholeBody?: string
}

interface Row<R extends Request, E extends v.ObjectEntries> extends Declared {
  /** The parameters outside the path: in the query for GET and DELETE, otherwise in the body. */
  readonly accepts?: E
  run(core: Core, input: Input<R, E>, caller: Caller): unknown
}

export interface Endpoint extends Declared {
  readonly doc: string
  readonly needs: Needs
  readonly method: Method
  readonly path: string
  /** Names of the parameters outside the path. */
  readonly accepts: readonly string[]
  /** Checks the parameters and runs the operation. `undefined` means that there is no result. @throws HubError */
  perform(core: Core, args: Args, caller: Caller): unknown
}

export type Endpoints = Readonly<Record<string, Endpoint>>

type Undocumented = { doc(doc: string): Endpoint }

/** @param request the method and the path, which is relative to the path of the item */
// biome-ignore lint/complexity/noBannedTypes: a row without `accepts` adds `{}` to the parameters of its path.
export function endpoint<const R extends Request, const E extends v.ObjectEntries = {}>(
  request: R,
  needs: Needs,
  row: Row<R, E>,
): Undocumented
export function endpoint(
  request: Request,
  needs: Needs,
  { accepts = {}, run, ...row }: Row<Request, v.ObjectEntries>,
): Undocumented {
  const { read, ...route } = requestOf(request, accepts)
  const perform: Endpoint['perform'] = (core, args, caller) => run(core, read(args), caller)
  return { doc: (doc) => ({ ...row, ...route, needs, doc, accepts: Object.keys(accepts), perform }) }
}

/** Adds a description for the documentation to an option. */
export const described = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.pipe(schema, v.description(text))

export const optional = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.optional(described(schema, text))

export const missing = (name: string) => new HubError(400, 'missing_parameter', `Missing Parameter: ${name}`)
export const invalid = (name: string) => new HubError(400, 'invalid_parameter', `Invalid Parameter: ${name}`)

/** Returns the value of a setting. @throws HubError 404 if there is no such setting */
export function settingIn(settings: ReadonlyMap<string, unknown>, name: string): unknown {
  if (!settings.has(name)) throw new HubError(404, 'not_found', 'Setting Not Found')
  return settings.get(name)
}

/** Validates parameters. @throws HubError 400 that names the first invalid parameter */
export function checked<S extends v.GenericSchema>(schema: S, args: Args): v.InferOutput<S> {
  const parsed = v.safeParse(schema, args, { abortEarly: true })
  if (parsed.success) return parsed.output
  const name = String(parsed.issues[0].path?.[0]?.key ?? '')
  throw Object.hasOwn(args, name) && args[name] !== undefined ? invalid(name) : missing(name)
}
