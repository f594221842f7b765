/** The tables of topics, commands and error codes. */

import { options } from '../../config/options.ts'
import type { Command } from '../../contract/command.ts'
import { COMMANDS } from '../../contract/commands.ts'
import { ERROR_CODES } from '../../contract/errors.ts'
import { commandKey } from '../../contract/permissions.ts'
import { PUBLICATIONS, type Publication } from '../../contract/publications.ts'
import { OPERATIONS } from '../../hub/operations.ts'
import { code, markdownTable } from './markdown.ts'
import { address, commandTopics } from './publications.ts'
import { type JsonSchema, jsonSchema, shortForm, takesNothing } from './schema.ts'

/** What stands for the roots of topics unless configuration says otherwise. */
const ROOTS: Readonly<Record<string, string | undefined>> = {
  base: options['mqtt.base_topic'].default,
  prefix: options['discovery.prefix'].default,
}

const shown = (template: string) => code(address(template, (name) => ROOTS[name] ?? `<${name}>`))

/** Only the keys of an object: the AsyncAPI document has the types. */
function statePayload({ properties, required, ...schema }: JsonSchema): string {
  if (schema.anyOf !== undefined) {
    return schema.anyOf.map((one) => (typeof one === 'boolean' ? 'any JSON' : statePayload(one))).join(' or ')
  }
  if (properties === undefined) return schema.enum === undefined ? 'any JSON' : code(shortForm(schema))
  return code(
    `{${Object.keys(properties)
      .map((key) => (required?.includes(key) ? key : `${key}?`))
      .join(', ')}}`,
  )
}

export function topicsSection(): string {
  const rows = Object.values<Publication>(PUBLICATIONS).map(({ topic, retained, schema, doc }) => [
    shown(topic),
    retained ? 'yes' : 'no',
    statePayload(jsonSchema(schema)),
    doc,
  ])
  return markdownTable(['Topic', 'Retained', 'Payload', 'Meaning'], rows)
}

/** The permission that a command needs, as the hub's settings page calls it; none for a command of the bridge itself. */
export function permissionOf(command: Command): string | undefined {
  const row: { readonly scope?: string } =
    command.target === 'bridge' || command.operation === null ? {} : OPERATIONS[command.operation]
  return row.scope
}

/** Whether a command is refused unless the configuration names it. */
export const offByDefault = (command: Command): boolean => command.allowed === false

function payloadText({ payload }: Command): string {
  const schema = jsonSchema(payload.schema)
  const short = shortForm(schema)
  if (short === 'any') return 'a JSON value, or text'
  const nothing = takesNothing(payload)
  if (short === '{}') return 'empty'
  return `${nothing ? 'empty, or ' : ''}${code(short)}`
}

export function commandsSection(): string {
  const rows = COMMANDS.map((command) => {
    const permission = permissionOf(command)
    return [
      shown(commandTopics(command).topic),
      payloadText(command),
      command.target === 'bridge' ? '—' : command.operation === null ? 'any' : code(command.operation),
      permission === undefined ? '—' : code(permission),
      offByDefault(command) ? `no: ${code(`commands.allow: [${commandKey(command)}]`)}` : 'yes',
      command.doc,
    ]
  })
  return markdownTable(['Topic', 'Payload', 'Operation', 'Permission', 'Allowed', 'What it does'], rows)
}

export function errorsSection(): string {
  return markdownTable(
    ['Code', 'Meaning'],
    Object.entries(ERROR_CODES).map(([name, doc]) => [code(name), doc]),
  )
}
