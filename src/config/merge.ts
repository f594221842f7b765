/** Convict holds the defaults made from a table and lays the sources over them. */
import convict from 'convict'
import * as v from 'valibot'
import { nest, type Table, type Tree, type Values } from './table.ts'

/** The values that one source has for a table's options. */
export type Layer = ReadonlyMap<string, unknown>

type Schema = convict.Schema<Record<string, unknown>>

function toObject(node: Tree<convict.SchemaObj>): Schema {
  return Object.fromEntries([...node].map(([key, value]) => [key, value instanceof Map ? toObject(value) : value]))
}

/** Values are parsed before they get here, because convict's own parsing is lax (its booleans accept `0` as true). */
function convictSchema(table: Table): Schema {
  const properties = Object.entries(table).map(([path, { doc, schema, sensitive, default: written }]) => {
    const value = written === undefined || written === null ? written : v.parse(schema, written)
    const property: convict.SchemaObj = { doc, format: '*', default: value, sensitive: sensitive === true }
    return [path, property] as const
  })
  return toObject(nest(properties))
}

/**
 * Defaults under the layers, strongest last.
 * @throws if a schema refuses its default: a bug
 */
export function merge<T extends Table>(table: T, layers: readonly Layer[]): Values<T> {
  // Without these convict would read the process's arguments and environment.
  const config = convict(convictSchema(table), { env: {}, args: [] })
  for (const values of layers) {
    for (const [path, value] of values) config.set(path, value)
  }
  config.validate({ allowed: 'strict' })
  // Each value is what its schema made of it, and the type is inferred from the schemas.
  return config.getProperties() as Values<T>
}
