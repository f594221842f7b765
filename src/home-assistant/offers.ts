/** Which entities are offered: those that work with this hub, key and configuration. */
import type { Command } from '../contract/command.ts'
import { findCommand } from '../contract/commands.ts'
import { type CommandPolicy, mayUse, permission } from '../contract/permissions.ts'
import type { Hub } from '../hub/hub.ts'
import type { Entity } from './entity.ts'

/** The command of a row. @throws Error if the command does not exist */
export function commandOf(entity: Entity): Command | undefined {
  if (!('sends' in entity)) return undefined
  const command = findCommand(entity.device, entity.sends, entity.setting !== undefined)
  if (command === undefined) throw new Error(`the entity ${entity.key} sends ${entity.sends}, which is not a command`)
  return command
}

/** Whether an entity may be offered; omit `hub` for the bridge's own entities. */
export function isOffered(entity: Entity, hub: Pick<Hub, 'permits'> | undefined, policy: CommandPolicy): boolean {
  if (entity.when === 'guard' && !policy.guarded) return false
  if (entity.from !== undefined && hub?.permits(entity.from) !== 'yes') return false
  if (entity.setting !== undefined && hub?.permits('getAppSettings') !== 'yes') return false
  const command = commandOf(entity)
  if (command === undefined) return true
  if (!mayUse(policy, command)) return false
  return command.target === 'bridge' || (hub !== undefined && permission(hub, command) === 'yes')
}

/** The entity while the guardian is on, with the additional event types. */
export function guardedForm(entity: Entity): Entity {
  return entity.platform === 'event' ? { ...entity, types: [...entity.types, ...entity.guardTypes] } : entity
}
