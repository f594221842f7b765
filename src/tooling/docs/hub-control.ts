/** Tables of an emulated hub: its operations, the endpoints of its control port and its behaviours. */
import type * as v from 'valibot'
import { CONTROL } from '../../emulator/control/table.ts'
import { ENTRIES } from '../../emulator/core/table.ts'
import { BEHAVIOURS } from '../../emulator/misbehaviour.ts'
import { code, markdownTable } from './markdown.ts'
import { jsonSchema } from './schema.ts'

const described = (entries: v.ObjectEntries, left: readonly string[]) =>
  Object.entries(entries)
    .filter(([name]) => !left.includes(name))
    .map(([name, schema]) => `${code(name)}: ${jsonSchema(schema).description ?? ''}`)
    .join(' ')

export function operationsSection(): string {
  const rows = ENTRIES.map(({ name, item, endpoint: { method, path, needs, only, doc, takes } }) => [
    code(name),
    code(`${method} /${item}${path === '/' ? '' : path}`),
    needs === 'key' ? 'any key' : needs === 'nothing' ? '—' : code(needs.replace('homey', 'hub')),
    takes.map(code).join(', '),
    only === undefined ? 'all' : only.join(', '),
    doc,
  ])
  return markdownTable(['Operation', 'Request', 'Permission', 'Takes', 'Kinds', 'What it does'], rows)
}

export function controlSection(): string {
  const rows = CONTROL.map(({ method, path, doc, takes }) => [
    code(`${method} ${path}`),
    doc,
    described(takes, ['options']),
  ])
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
