/** Convict holds the schema made from a table, lays the sources over the defaults and checks the result strictly. */
import convict from 'convict'
import { type AnyOption, nest, type Table, type Tree } from './table.ts'

export type Layer = ReadonlyMap<string, unknown>

/** The values that one source has for a table's options. */
export function layer(table: Table, read: (path: string, option: AnyOption) => { value: unknown } | undefined): Layer {
  const values = new Map<string, unknown>()
  for (const [path, option] of Object.entries(table)) {
    const found = read(path, option)
    if (found !== undefined) values.set(path, found.value)
  }
  return values
}

type Schema = convict.Schema<Record<string, unknown>>

function toObject(node: Tree<convict.SchemaObj>): Schema {
  return Object.fromEntries([...node].map(([key, value]) => [key, value instanceof Map ? toObject(value) : value]))
}

/**
 * The table as convict knows it. Values were parsed before they get here, since convict's own reading of text is lax
 * (its booleans take `0` for true); its check is the inverse: shown as in a file, a value must parse to itself.
 */
export function convictSchema(table: Table): Schema {
  const properties = Object.entries(table).map(([path, { doc, format, sensitive, ...rest }]) => {
    const check = (value: unknown) => {
      const parsed = format.parse(format.show(value), { resolvePath: (file) => file })
      if (!parsed.ok) throw new Error(`expected ${parsed.expected}`)
    }
    const property: convict.SchemaObj = { doc, format: check, default: rest.default, sensitive: sensitive === true }
    return [path, property] as const
  })
  return toObject(nest(properties))
}

/** Defaults under the layers, strongest last. Throws only if a default or a format is wrong: a fault of ours. */
export function merge(table: Table, layers: readonly Layer[]): unknown {
  // Without these convict would look at the process's own arguments and environment.
  const config = convict(convictSchema(table), { env: {}, args: [] })
  for (const values of layers) {
    for (const [path, value] of values) config.set(path, value)
  }
  config.validate({ allowed: 'strict' })
  return config.getProperties()
}
