/** The JSON Schema of the configuration file, for editors. */
import type { JsonSchema } from './format.ts'
import { HUB_NAME_PATTERN, hubOptions, options, RESERVED_HUB_NAMES } from './options.ts'
import { type AnyOption, fileKey, nest, type Table } from './table.ts'

function ofOption({ doc, format, default: fallback, required, example }: AnyOption): JsonSchema {
  return {
    description: doc,
    ...format.schema,
    ...(required ? {} : { default: format.show(fallback) }),
    ...(example === undefined ? {} : { examples: [example] }),
  }
}

function ofNode(node: ReadonlyMap<string, unknown>): JsonSchema {
  const properties = [...node].map(([key, value]) => [key, value instanceof Map ? ofNode(value) : value])
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) }
}

function ofTable(table: Table): Map<string, unknown> {
  return nest(
    Object.entries(table).flatMap(([path, option]) => {
      const row: [string, JsonSchema][] = [[path, ofOption(option)]]
      if (option.sensitive) {
        row.push([fileKey(path), { type: 'string', minLength: 1, description: `A file that holds ${path} instead.` }])
      }
      return row
    }),
  )
}

/** Text of `config/hub2mqtt.schema.json`. Nothing is required: the environment may supply it. */
export function configSchema(): string {
  const hubs: JsonSchema = {
    type: 'object',
    description: 'The hubs by the name that they have on MQTT.',
    propertyNames: { pattern: HUB_NAME_PATTERN.source, not: { enum: RESERVED_HUB_NAMES } },
    additionalProperties: ofNode(ofTable(hubOptions)),
  }
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'hub2mqtt configuration',
    ...ofNode(new Map<string, unknown>([['hubs', hubs], ...ofTable(options)])),
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}
