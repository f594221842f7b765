import { stringify } from 'yaml'
import { type Config, hubOptions, options } from './options.ts'
import { secretsIn, show } from './schemas.ts'
import { nest, type Table, valueAt } from './table.ts'

export const MASK = '***'

function rowsOf(config: Config) {
  const rows = (table: Table, values: unknown, prefix: string) =>
    Object.entries(table).map(([path, option]) => ({ path: prefix + path, option, value: valueAt(values, path) }))
  const ofHubs = Object.entries(config.hubs).flatMap(([name, hub]) => rows(hubOptions, hub, `hubs.${name}.`))
  return [...ofHubs, ...rows(options, config, '')]
}

/** Returns the configuration as a YAML file without its secrets, for `check-config`. */
export function describeConfig(config: Config): string {
  const shown = rowsOf(config).map(({ path, option: { schema, sensitive }, value }) => {
    const isSecret = sensitive && value !== null && !(value instanceof Map && value.size === 0)
    return [path, isSecret ? MASK : show(schema, value)] as const
  })
  return stringify(nest(shown), { lineWidth: 0 })
}

/** Returns every secret of a configuration, to redact text from other programs. */
export function secretsOf(config: Config): string[] {
  return rowsOf(config).flatMap(({ option, value }) => (option.sensitive ? secretsIn(option.schema, value) : []))
}
