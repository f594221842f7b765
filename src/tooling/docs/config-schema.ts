import type * as v from 'valibot'
import { path as filePath } from '../../config/addresses.ts'
import { HUB_NAME, hubName, hubOptions, options } from '../../config/options.ts'
import { fileKey, nest, type Option, type Table } from '../../config/table.ts'
import { type JsonSchema, jsonSchema } from './schema.ts'

type Schema = Readonly<Record<string, unknown>>

const convert = (schema: v.GenericSchema) => jsonSchema(schema, 'draft-2020-12')

/** Also permits `null`, because a key without a value is an omitted option. */
function orNull({ type, anyOf, enum: values, ...rest }: JsonSchema): Schema {
  if (anyOf !== undefined) return { ...rest, anyOf: [...anyOf, { type: 'null' }] }
  return {
    ...rest,
    ...(type !== undefined && { type: [...(Array.isArray(type) ? type : [type]), 'null'] }),
    ...(values !== undefined && { enum: [...values, null] }),
  }
}

/** Converts maps to objects, because JSON has no maps. */
export const plain = (value: unknown): unknown => (value instanceof Map ? Object.fromEntries(value) : value)

function ofOption({ doc, schema, default: fallback = null, required, example }: Option): Schema {
  return {
    description: doc,
    ...orNull(convert(schema)),
    ...(required ? {} : { default: plain(fallback) }),
    ...(example === undefined ? {} : { examples: [example] }),
  }
}

function ofNode(node: ReadonlyMap<string, unknown>): Schema {
  const properties = [...node].map(([key, value]) => [key, value instanceof Map ? ofNode(value) : value])
  const twice = [...node.keys()].filter((key) => node.has(fileKey(key))).map(givenTwice)
  return {
    type: ['object', 'null'],
    additionalProperties: false,
    properties: Object.fromEntries(properties),
    ...(twice.length > 0 && { not: { anyOf: twice } }),
  }
}

/** Matches a secret that is set twice: as a value, and as the path of a file. */
function givenTwice(key: string): Schema {
  const both = [key, fileKey(key)]
  return {
    type: 'object',
    required: both,
    properties: Object.fromEntries(both.map((name) => [name, { type: ['string', 'object'] }])),
  }
}

function ofTable(table: Table): Map<string, unknown> {
  return nest(
    Object.entries(table).flatMap(([path, option]) => {
      const row: [string, Schema][] = [[path, ofOption(option)]]
      if (option.sensitive) {
        row.push([fileKey(path), { description: `A file that contains ${path}.`, ...orNull(convert(filePath)) }])
      }
      return row
    }),
  )
}

/** Returns the schema, in which no option is required, because the environment may supply it. */
export function configSchema(): string {
  const hubs: Schema = {
    type: ['object', 'null'],
    description: `The hubs by their name in topics: ${HUB_NAME}.`,
    propertyNames: convert(hubName),
    additionalProperties: ofNode(ofTable(hubOptions)),
  }
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'hub2mqtt configuration',
    ...ofNode(new Map<string, unknown>([['hubs', hubs], ...ofTable(options)])),
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}
