/** The tables of what Home Assistant gets. */

import { ENTITIES } from '../../home-assistant/entities.ts'
import type { DeviceKind, Entity } from '../../home-assistant/entity.ts'
import { commandOf } from '../../home-assistant/offers.ts'
import { TRIGGERS } from '../../home-assistant/triggers.ts'
import { OPERATIONS } from '../../hub/operations.ts'
import { code, markdownTable } from './markdown.ts'

const DEVICES: Readonly<Record<DeviceKind, string>> = {
  app: 'On the device of each app',
  hub: 'On the device of each hub',
  bridge: 'On the device of the bridge',
}

/** Where it stands in the interface, and whether it must be switched on there first. */
function shown({ category, enabled }: Entity): string {
  const places = { config: 'configuration', diagnostic: 'diagnostic' } as const
  const place = category === undefined ? 'main' : places[category]
  return enabled === false ? `${place}, off by default` : place
}

/** What the key must permit for it to be offered, besides reading the apps. */
function needs(entity: Entity): string {
  const command = commandOf(entity)
  if (command === undefined || command.target === 'bridge' || command.operation === null) return '—'
  const row: { readonly scope?: string } = OPERATIONS[command.operation]
  return row.scope === undefined || row.scope === 'hub.app.readonly' ? '—' : code(row.scope)
}

export function entitiesSection(): string {
  const parts = Object.entries(DEVICES).map(([device, title]) => {
    const rows = ENTITIES.filter((entity) => entity.device === device)
    const table = markdownTable(
      ['Entity', 'Platform', 'Key', 'Shown', 'Needs', 'What it is'],
      rows.map((entity) => [
        entity.name ?? '(the app itself)',
        entity.platform,
        code(entity.key),
        shown(entity),
        needs(entity),
        entity.doc,
      ]),
    )
    return `${title}:\n\n${table}`
  })
  const triggers = markdownTable(
    ['Trigger', 'Key', 'When'],
    TRIGGERS.map(({ event, key, doc }) => [code(event), code(key), doc]),
  )
  return [...parts, `Triggers on the device of each app, for automations:\n\n${triggers}`].join('\n\n')
}
