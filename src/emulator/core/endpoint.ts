/** What an endpoint of the hub is. REST, the realtime channel, the in-app interface and the documentation read it. */
import * as v from 'valibot'
import { HubError } from '../hub-error.ts'
import type { Flavour } from '../records.ts'
import type { Needs } from '../scopes.ts'
import type { HubApps } from './hub-apps.ts'
import type { HubStore } from './hub-store.ts'

/** What an endpoint may know of, and do to, the hub that it runs on. */
export interface Core {
  readonly id: string
  readonly version: string
  readonly flavour: Flavour
  readonly apps: HubApps
  readonly store: HubStore
  /** Milliseconds since the hub has started. */
  uptime(): number
  speak(text: string): void | Promise<void>
  /** An event of a section's item, such as `homey:manager:apps`. */
  tell(uri: string, event: string, payload: unknown): void
}

export interface Caller {
  /** In the spelling `homey.…`. */
  readonly scopes: readonly string[]
  /** The app that asks from inside; without it a client with a key. */
  readonly app?: string
}

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const
export type Method = (typeof METHODS)[number]
export type Input = v.ObjectSchema<v.ObjectEntries, undefined>

interface Declared {
  readonly doc: string
  readonly method: Method
  /** Below the item's path; `:name` is a parameter, percent-encoded. */
  readonly path: string
  /** The reference's path for the same, where it differs. Older hubs answer both, a hub of the reference this alone. */
  readonly alias?: string
  readonly needs: Needs
  /** Set where an app may ask whatever its permissions are: it is about the app itself. */
  readonly own?: true
  /** Without it hubs of every flavour have the endpoint. */
  readonly only?: readonly Flavour[]
  /** The one parameter that is the whole body. */
  readonly wholeBody?: string
}

interface Row<I extends Input> extends Declared {
  /** All parameters by name. Those of the path come from there, the others from the query of GET and DELETE, or the body. */
  readonly input: I
  run(core: Core, input: v.InferOutput<I>, caller: Caller): unknown
}

export interface Endpoint extends Declared {
  readonly input: Input
  /** Checks the parameters and carries it out; `undefined`, or a promise of it, is "nothing". @throws HubError */
  perform(core: Core, args: Readonly<Record<string, unknown>>, caller: Caller): unknown
}

export type Endpoints = Readonly<Record<string, Endpoint>>

export function endpoint<const I extends Input>({ run, ...row }: Row<I>): Endpoint {
  return { ...row, perform: (core, args, caller) => run(core, checked(row.input, args), caller) }
}

/** For endpoints without parameters. */
export const NONE = v.object({})

/** An option, with what the documentation says of it. */
export const described = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.pipe(schema, v.description(text))

export const optional = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.optional(described(schema, text))

export const missing = (name: string) => new HubError(400, 'missing_parameter', `Missing Parameter: ${name}`)
export const invalid = (name: string) => new HubError(400, 'invalid_parameter', `Invalid Parameter: ${name}`)

/** The parameters as the schema has them. @throws HubError 400 that names the first one which does not fit */
export function checked<I extends Input>(schema: I, args: Readonly<Record<string, unknown>>): v.InferOutput<I> {
  const parsed = v.safeParse(schema, args, { abortEarly: true })
  if (parsed.success) return parsed.output
  const name = String(parsed.issues[0].path?.[0]?.key ?? '')
  throw Object.hasOwn(args, name) && args[name] !== undefined ? invalid(name) : missing(name)
}

/** Names of the parameters in a path. */
export const inPath = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
