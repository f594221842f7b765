import { exitCodes } from '../../cli/command.ts'
import { commands } from '../../cli/commands.ts'
import { EXPECTATIONS } from '../../cli/conformance/expectations.ts'
import { commandUsage, flagText, flagUsage } from '../../cli/help.ts'
import { options } from '../../config/options.ts'
import type { Command } from '../../contract/command.ts'
import { COMMANDS } from '../../contract/commands.ts'
import { ERROR_CODES } from '../../contract/errors.ts'
import { commandKey } from '../../contract/permissions.ts'
import { PUBLICATIONS, type Publication } from '../../contract/publications.ts'
import { ENTITIES } from '../../home-assistant/entities.ts'
import { commandOf, type DeviceKind, type Entity } from '../../home-assistant/entity.ts'
import { TRIGGERS, triggerKey } from '../../home-assistant/triggers.ts'
import { OPERATIONS } from '../../hub/operations.ts'
import { address, code, commandTopics, markdownTable } from './markdown.ts'
import { acceptsNothing, type JsonSchema, jsonSchema, requiredSchema, shortForm } from './schema.ts'

/** The defaults of the options that determine the first level of topics. */
const ROOTS: Readonly<Record<string, string | undefined>> = {
  base: options['mqtt.base_topic'].default,
  prefix: options['discovery.prefix'].default,
}

const shown = (template: string) => code(address(template, (name) => ROOTS[name] ?? `<${name}>`))

/** Lists only the keys of an object, because the AsyncAPI document has the types. */
function statePayload({ properties, required, ...schema }: JsonSchema): string {
  if (schema.anyOf !== undefined) {
    return schema.anyOf.map((one) => (typeof one === 'boolean' ? 'any JSON' : statePayload(one))).join(' or ')
  }
  if (properties === undefined) return schema.enum === undefined ? 'any JSON' : code(shortForm(schema))
  const keys = Object.keys(properties).map((key) => (required?.includes(key) ? key : `${key}?`))
  return code(`{${keys.join(', ')}}`)
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

/** Returns the permission as the hub's settings page names it; `undefined` for the bridge's commands. */
export function permissionOf(command: Command): string | undefined {
  const row: { readonly scope?: string } =
    command.target === 'bridge' || command.operation === null ? {} : OPERATIONS[command.operation]
  return row.scope
}

/** Returns `true` if the command is refused unless the configuration names it. */
export const offByDefault = (command: Command): boolean => command.allowed === false

function payloadText(command: Command): string {
  const short = shortForm(requiredSchema(command))
  if (short === 'any') return 'a JSON value, or text'
  const nothing = acceptsNothing(command)
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
  return markdownTable(['Topic', 'Payload', 'Operation', 'Permission', 'Allowed', 'Description'], rows)
}

export function errorsSection(): string {
  const rows = Object.entries(ERROR_CODES).map(([name, doc]) => [code(name), doc])
  return markdownTable(['Code', 'Meaning'], rows)
}

const DEVICES: Readonly<Record<DeviceKind, string>> = {
  app: 'On the device of each app',
  hub: 'On the device of each hub',
  bridge: 'On the device of the bridge',
}

/** Describes where Home Assistant shows the entity, and whether the user must enable it first. */
function placeOf({ category, enabled }: Entity): string {
  const places = { config: 'configuration', diagnostic: 'diagnostic' } as const
  const place = category === undefined ? 'main' : places[category]
  return enabled === false ? `${place}, off by default` : place
}

/** Returns the permission that the key needs for the entity, in addition to reading the apps. */
function needOf(entity: Entity): string {
  const command = commandOf(entity)
  const scope = command && permissionOf(command)
  return scope === undefined || scope === 'hub.app.readonly' ? '—' : code(scope)
}

export function entitiesSection(): string {
  const parts = Object.entries(DEVICES).map(([device, title]) => {
    const rows = ENTITIES.filter((entity) => entity.device === device)
    const table = markdownTable(
      ['Entity', 'Platform', 'Key', 'Shown', 'Needs', 'Meaning'],
      rows.map((entity) => [
        entity.name ?? '(the app itself)',
        entity.platform,
        code(entity.key),
        placeOf(entity),
        needOf(entity),
        entity.doc,
      ]),
    )
    return `${title}:\n\n${table}`
  })
  const rows = TRIGGERS.map((row) => [code(row.event), code(triggerKey(row)), row.doc])
  const triggers = markdownTable(['Trigger', 'Key', 'When'], rows)
  return [...parts, `Device triggers of each app, for automations:\n\n${triggers}`].join('\n\n')
}

export function cliSection(): string {
  const rows = Object.entries(commands).map(([name, row]) => {
    const options = Object.entries(row.flags).map(([flag, one]) => `${code(flagUsage(flag, one))}: ${flagText(one)}`)
    return [code(commandUsage(name, row)), row.summary, options.join('<br>')]
  })
  const exits = Object.values(exitCodes).map(({ code: number, doc }) => `${code(String(number))} ${doc}`)
  return [markdownTable(['Command', 'Description', 'Options'], rows), `Exit codes: ${exits.join('; ')}.`].join('\n\n')
}

export function expectationsSection(): string {
  return markdownTable(
    ['Id', 'Mark', 'Expectation', 'Kinds of hub'],
    EXPECTATIONS.map(({ id, mark, says, only }) => [code(id), mark, says, only?.map(code).join(', ') ?? 'all']),
  )
}
