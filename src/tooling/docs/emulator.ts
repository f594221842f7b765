import type * as v from 'valibot'
import { CONTROL } from '../../emulator/control.ts'
import { ENTRIES } from '../../emulator/core/table.ts'
import { ManifestFields, ManifestSchema } from '../../emulator/data/manifest.ts'
import { AppFields, HubFields, HubFileSchema } from '../../emulator/hub-file.ts'
import { BEHAVIOURS } from '../../emulator/misbehaviour.ts'
import { code, markdownTable } from './markdown.ts'
import { type JsonSchema, jsonSchema } from './schema.ts'

const described = (entries: v.ObjectEntries, omitted: readonly string[]) =>
  Object.entries(entries)
    .filter(([name]) => !omitted.includes(name))
    .map(([name, schema]) => `${code(name)}: ${jsonSchema(schema).description ?? ''}`)
    .join(' ')

export function operationsSection(): string {
  const rows = ENTRIES.map(({ name, item, endpoint: { method, path, needs, only, doc, accepts } }) => [
    code(name),
    code(`${method} /${item}${path === '/' ? '' : path}`),
    needs === 'key' ? 'any key' : needs === 'nothing' ? '—' : code(needs.replace('homey', 'hub')),
    accepts.map(code).join(', '),
    only === undefined ? 'all' : only.join(', '),
    doc,
  ])
  return markdownTable(['Operation', 'Request', 'Permission', 'Input', 'Kinds', 'Description'], rows)
}

export function controlSection(): string {
  const rows = CONTROL.map(({ method, path, doc, accepts }) => [
    code(`${method} ${path}`),
    doc,
    described(accepts, ['options']),
  ])
  return markdownTable(['Endpoint', 'Description', 'Body'], rows)
}

/** Options that several behaviours share. The text above the table describes them. */
const COMMON = ['times', 'operation', 'event']

export function behavioursSection(): string {
  const rows = Object.entries(BEHAVIOURS).map(([name, { doc, concerns, options }]) => [
    code(name),
    doc,
    concerns,
    described(options.entries, COMMON),
  ])
  return markdownTable(['Behaviour', 'What happens', 'Concerns', 'Options'], rows)
}

function schemaFile(schema: v.GenericSchema, title: string): string {
  const $schema = 'https://json-schema.org/draft/2020-12/schema'
  return `${JSON.stringify({ $schema, title, ...jsonSchema(schema, 'draft-2020-12') }, null, 2)}\n`
}

export const hubFileSchema = () => schemaFile(HubFileSchema, 'emulated hub of hub2mqtt')

export const manifestSchema = () => schemaFile(ManifestSchema, 'app of the emulated hub of hub2mqtt')

const TYPES: Readonly<Record<string, string>> = { array: 'list', object: 'map', string: 'text' }

/** Returns the name of the type in documents, such as `text`, or the permitted values. */
function typeOf({ type, enum: words }: JsonSchema): string {
  if (words !== undefined) return words.map((word) => code(String(word))).join(', ')
  return TYPES[String(type)] ?? String(type)
}

function fieldsTable(fields: Readonly<Record<string, v.GenericSchema>>): string {
  const rows = Object.entries(fields).map(([name, schema]) => {
    const { description = '', ...rest } = jsonSchema(schema)
    return [code(name), typeOf(rest), description]
  })
  return markdownTable(['Field', 'Value', 'Meaning'], rows)
}

export function hubFileSection(): string {
  const ofApp = 'Each app in `apps` and `store` is a map with these fields:'
  return [fieldsTable(HubFields), ofApp, fieldsTable(AppFields)].join('\n\n')
}

export const manifestSection = () => fieldsTable(ManifestFields)
