/** The effective configuration in the form of a file, with secrets masked. */
import { stringify } from 'yaml'
import { type Config, hubOptions, options } from './options.ts'
import { secretsIn, show } from './schemas.ts'
import { nest, type Table, valueAt } from './table.ts'

export const MASK = '***'

function shown(table: Table, values: unknown, prefix: string): [string, unknown][] {
  return Object.entries(table).map(([path, { schema, sensitive }]) => {
    const value = valueAt(values, path)
    const isSecret = sensitive && value !== null && !(value instanceof Map && value.size === 0)
    return [prefix + path, isSecret ? MASK : show(schema, value)]
  })
}

/** The YAML that `check-config` prints: a configuration file without its secrets. */
export function describeConfig(config: Config): string {
  const hubs = Object.entries(config.hubs).flatMap(([name, hub]) => shown(hubOptions, hub, `hubs.${name}.`))
  return stringify(nest([...hubs, ...shown(options, config, '')]), { lineWidth: 0 })
}

/** Every secret in it, to redact texts of other programs. */
export function secretsOf(config: Config): string[] {
  const of = (table: Table, values: unknown) =>
    Object.entries(table).flatMap(([path, { schema, sensitive }]) =>
      sensitive ? secretsIn(schema, valueAt(values, path)) : [],
    )
  return [...Object.values(config.hubs).flatMap((hub) => of(hubOptions, hub)), ...of(options, config)]
}
