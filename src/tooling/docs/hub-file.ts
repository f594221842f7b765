/** The file of an emulated hub: its JSON Schema for editors, and its tables. */
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { AppFields, HubFields, HubFileSchema } from '../../emulator/hub-file.ts'
import { code, markdownTable } from './markdown.ts'

/** That an id occurs once, JSON Schema cannot say. From the last schema of a pipe on: the first one only refuses lists. */
const convert = (schema: v.GenericSchema): JsonSchema =>
  toJsonSchema(schema, { target: 'draft-2020-12', typeMode: 'output', ignoreActions: ['check'] })

/** Text of `config/emulated-hub.schema.json`. */
export function hubFileSchema(): string {
  return schemaFile(HubFileSchema, 'emulated hub of hub2mqtt')
}

export function schemaFile(schema: v.GenericSchema, title: string): string {
  const { $schema, ...rest } = convert(schema)
  return `${JSON.stringify({ $schema, title, ...rest }, null, 2)}\n`
}

const TYPES: Readonly<Record<string, string>> = { array: 'list', object: 'map', string: 'text' }

/** `text`, or the words that may stand there. */
function typeOf({ type, enum: words }: JsonSchema): string {
  if (words !== undefined) return words.map((word) => code(String(word))).join(', ')
  return TYPES[String(type)] ?? String(type)
}

export function fieldsTable(fields: Readonly<Record<string, v.GenericSchema>>): string {
  const rows = Object.entries(fields).map(([name, schema]) => {
    const { description = '', ...rest } = convert(schema)
    return [code(name), typeOf(rest), description]
  })
  return markdownTable(['Field', 'Value', 'Meaning'], rows)
}

export function hubFileSection(): string {
  const ofApp = 'Each app, in `apps` as in `store`, is a map with:'
  return [fieldsTable(HubFields), ofApp, fieldsTable(AppFields)].join('\n\n')
}
