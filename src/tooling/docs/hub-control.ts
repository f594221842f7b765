/** The control port of an emulated hub: tables of its endpoints and of the behaviours. */
import type * as v from 'valibot'
import { CONTROL } from '../../emulator/control/table.ts'
import { BEHAVIOURS } from '../../emulator/misbehaviour.ts'
import { code, markdownTable } from './markdown.ts'
import { jsonSchema } from './schema.ts'

const described = (entries: v.ObjectEntries, left: readonly string[]) =>
  Object.entries(entries)
    .filter(([name]) => !left.includes(name))
    .map(([name, schema]) => `${code(name)}: ${jsonSchema(schema).description ?? ''}`)
    .join(' ')

export function controlSection(): string {
  const rows = CONTROL.map(({ method, path, doc, input }) => {
    const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
    return [code(`${method} ${path}`), doc, described(input.entries, [...inPath, 'options'])]
  })
  return markdownTable(['Endpoint', 'What it does', 'Body'], rows)
}

/** Options that several behaviours have in common stand in the text above the table. */
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
