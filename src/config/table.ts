/** Defines options. Type, environment variable, JSON Schema and documentation of an option derive from one row. */

import convict from 'convict'
import * as v from 'valibot'

interface Traits {
  /** Set if a change takes effect at run time. With `ifSame`, the named option must also be set and unchanged. */
  readonly live?: true | { readonly ifSame: string }
  /** Set for a secret, which is masked in the log and wherever it is shown, and can be read from a file (`…_file`). */
  readonly sensitive?: true
  /**
   * Set for paths. A `certificate` or `key` is a PEM file that must be readable when the configuration is loaded; a
   * `key` should be readable only by its owner. A `folder` is read later. A `made` file is created by hub2mqtt.
   */
  readonly opens?: 'certificate' | 'key' | 'folder' | 'made'
}

/** Default and example are written as in a file. An option without a default needs an example. */
type Rest<S extends v.GenericSchema> = Traits &
  (
    | { readonly default: v.InferInput<S> | null; readonly required?: never; readonly example?: unknown }
    | { readonly default?: never; readonly required?: true; readonly example: unknown }
  )

/** The schema is that of the value as written in a file. Without a default, an omitted option is `null`. */
export type Option<S extends v.GenericSchema = v.GenericSchema> = { readonly doc: string; readonly schema: S } & Rest<S>

/** Defines an option. Its documentation comes last, because it is long. */
export const option = <S extends v.GenericSchema, const R extends Rest<S>>(schema: S, rest: R) => ({
  doc: (doc: string) => ({ doc, schema, ...rest }),
})

export type Table = Readonly<Record<string, Option>>

/** Keys are paths (`mqtt.embedded.host`). The types of the values come from the schemas. */
export function defineOptions<T extends Table>(rows: T & { readonly [P in keyof T]: Option<T[P]['schema']> }): T {
  return rows
}

/** Defines options that can all be changed without a restart. */
export function liveOptions<T extends Table>(rows: T & { readonly [P in keyof T]: Option<T[P]['schema']> }): T {
  // The cast is safe, because the code only adds `live: true` to each row, which every option may have.
  return Object.fromEntries(Object.entries(rows).map(([path, row]) => [path, { ...row, live: true }])) as T
}

type Value<O> = O extends { readonly schema: infer S extends v.GenericSchema } ? v.InferOutput<S> | Omitted<O> : never
/** An omitted option without a default is `null`. */
type Omitted<O> = O extends { readonly default: NonNullable<unknown> } | { readonly required: true } ? never : null
type Head<P> = P extends `${infer First}.${string}` ? First : P
type Tail<P, First extends string> = P extends `${First}.${infer Rest}` ? Rest : never

export type Values<T> = {
  readonly [First in Head<keyof T & string>]: First extends keyof T
    ? Value<T[First]>
    : Values<{ readonly [P in keyof T & string as Tail<P, First>]: T[P] }>
}

export function valueAt(values: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((node, key) => {
    if (node instanceof Map) return node.get(key)
    return typeof node === 'object' && node !== null && Object.hasOwn(node, key) ? Reflect.get(node, key) : undefined
  }, values)
}

export const VARIABLE_PREFIX = 'HUB2MQTT_'

/** Returns `HUB2MQTT_MQTT_BASE_TOPIC` for `mqtt.base_topic`. */
export const environmentName = (path: string): string => `${VARIABLE_PREFIX}${path.replaceAll('.', '_').toUpperCase()}`

/** Returns the key for the path of a file that contains the secret. */
export const fileKey = (path: string): string => `${path}_file`

/** Returns all keys that a file may have, in the table's order: the options, and the `_file` keys of secrets. */
export function fileKeys(table: Table): string[] {
  return Object.entries(table).flatMap(([path, option]) => (option.sensitive ? [path, fileKey(path)] : [path]))
}

export interface Tree<T> extends Map<string, T | Tree<T>> {}

/** Converts paths to nested maps, in the order of the entries. */
export function nest<T>(entries: Iterable<readonly [path: string, value: T]>): Tree<T> {
  const root: Tree<T> = new Map()
  for (const [path, value] of entries) {
    const keys = path.split('.')
    let node = root
    for (const key of keys.slice(0, -1)) {
      const next = node.get(key)
      const child: Tree<T> = next instanceof Map ? next : new Map()
      node.set(key, child)
      node = child
    }
    node.set(keys.at(-1) ?? path, value)
  }
  return root
}

function toObject(node: Tree<convict.SchemaObj>): convict.Schema<Record<string, unknown>> {
  return Object.fromEntries([...node].map(([key, value]) => [key, value instanceof Map ? toObject(value) : value]))
}

/** Merges the sources' values, highest precedence last, over the defaults. @throws if a schema rejects its default */
export function merge<T extends Table>(table: T, layers: readonly ReadonlyMap<string, unknown>[]): Values<T> {
  const defaults = Object.entries(table).map(([path, { schema, default: written = null }]) => {
    const value = written === null ? null : v.parse(schema, written)
    // All values have already been parsed, because convict's parsing is lax (its booleans accept `0` as `true`).
    return [path, { format: '*', default: value }] as const
  })
  // Pass `env` and `args`, because convict would otherwise read the process's arguments and environment.
  const config = convict(toObject(nest<convict.SchemaObj>(defaults)), { env: {}, args: [] })
  for (const values of layers) for (const [path, value] of values) config.set(path, value)
  // The cast is safe, because each value was parsed by its schema, and the type is inferred from the schemas.
  return config.getProperties() as Values<T>
}

type Camel<Key> = Key extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Key

type CamelKeys<T> = {
  readonly [Key in keyof T as Camel<Key> & string]: null extends T[Key] ? Exclude<T[Key], null> | undefined : T[Key]
}

/** Converts the keys to camel case, except the keys of nested objects. `null` becomes `undefined`. */
export function camelKeys<T extends object>(slice: T): CamelKeys<T> {
  const entries = Object.entries(slice).map(([key, value]) => {
    return [key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), value ?? undefined]
  })
  // The cast is safe, because the code above changes the keys just as the type does.
  return Object.fromEntries(entries) as CamelKeys<T>
}
