import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import type { Command } from '../../contract/command.ts'
import { ENVELOPE } from '../../contract/payload.ts'
import { mapping } from '../../emulator/hub-file.ts'

export type { JsonSchema }

type AnyMap = v.MapSchema<v.GenericSchema, v.GenericSchema, undefined>
const isMap = (schema: v.GenericSchema): schema is AnyMap => schema.type === 'map'

/** Ignores checks that JSON Schema cannot express, and `finite`, because every number in JSON is finite. */
export function jsonSchema(schema: v.GenericSchema, target: 'draft-07' | 'draft-2020-12' = 'draft-07'): JsonSchema {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    target,
    // Use the last schema of a pipe, because earlier schemas only convert maps to objects.
    typeMode: 'output',
    ignoreActions: ['transform', 'check', 'finite', 'readonly', 'metadata'],
    overrideSchema({ valibotSchema }) {
      if (valibotSchema === mapping) return { type: 'object', additionalProperties: {} }
      return isMap(valibotSchema)
        ? { type: 'object', additionalProperties: jsonSchema(valibotSchema.value, target) }
        : undefined
    },
    overrideAction({ valibotAction, jsonSchema: made }) {
      const requirement = 'requirement' in valibotAction ? valibotAction.requirement : undefined
      // JSON Schema implies the flag `u` for patterns. A limit in bytes also limits the number of characters.
      if (valibotAction.type === 'regex' && requirement instanceof RegExp)
        return { ...made, pattern: requirement.source }
      return valibotAction.type === 'max_bytes' ? { ...made, maxLength: Number(requirement) } : undefined
    },
  })
  return rest
}

/** Returns the JSON Schema of a payload, including the keys of the envelope if the payload may have an envelope. */
export function payloadSchema(command: Command): JsonSchema {
  const required = requiredSchema(command)
  return command.payload.enveloped ? withEnvelope(required) : required
}

const needsTransaction = (command: Command) => command.target === 'bridge' && command.needsTransaction === true

/** Returns the JSON Schema of a payload without the optional keys of the envelope. */
export function requiredSchema(command: Command): JsonSchema {
  const own = jsonSchema(command.payload.schema)
  if (!needsTransaction(command)) return own
  const { transaction = {} } = jsonSchema(ENVELOPE).properties ?? {}
  const required = [...(own.required ?? []), 'transaction']
  return { ...own, properties: { ...own.properties, transaction }, required }
}

function withEnvelope(schema: JsonSchema): JsonSchema {
  if (schema.anyOf !== undefined) {
    return { ...schema, anyOf: schema.anyOf.map((one) => (typeof one === 'boolean' ? one : withEnvelope(one))) }
  }
  if (schema.type !== 'object') return schema
  // Omit the minimum number of keys, which would also count the envelope's keys. The command's description states it.
  const { minProperties: _, ...rest } = schema
  return { ...rest, properties: { ...schema.properties, ...jsonSchema(ENVELOPE).properties } }
}

/** Returns `true` if the command accepts an empty payload. */
export function acceptsNothing(command: Command): boolean {
  try {
    command.payload.read('').input()
    return !needsTransaction(command)
  } catch {
    return false
  }
}

/** Returns a short text for a schema, such as `{confirm: string, purge_settings?: boolean}`. */
export function shortForm(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) {
    return [...new Set(schema.anyOf.map((one) => (typeof one === 'boolean' ? 'any' : shortForm(one))))].join(' | ')
  }
  if (schema.const !== undefined) return String(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(String).join(' | ')
  if (schema.type !== 'object') return typeof schema.type === 'string' ? schema.type : 'any'
  const keys = Object.entries(schema.properties ?? {}).map(([key, value]) => {
    const nested = typeof value === 'object' && value.type === 'object'
    const type = typeof value === 'boolean' ? 'any' : nested ? '{…}' : shortForm(value)
    return `${key}${schema.required?.includes(key) ? '' : '?'}: ${type}`
  })
  return `{${keys.join(', ')}}`
}

/** Joins words in camel case: `get api/apps` becomes `getApiApps`. */
export const camelCase = (text: string) =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
