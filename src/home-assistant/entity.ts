/** Types of entity rows. A row that Home Assistant would reject does not compile. */
import type { Command } from '../contract/command.ts'
import { type CommandName, findCommand } from '../contract/commands.ts'
import type { EventType } from '../contract/events.ts'
import { type CommandPolicy, mayUse, permission } from '../contract/permissions.ts'
import type { Payload, PublicationName, Publications } from '../contract/publications.ts'
import type { Hub } from '../hub/hub.ts'
import type { OperationName } from '../hub/operations.ts'
import type { Template } from './templates.ts'

export type DeviceKind = 'app' | 'hub' | 'bridge'

/** The topics that an entity of a device may read, which are rows of the contract's table. */
export type Readable<D extends DeviceKind> = {
  readonly [N in PublicationName]: Publications[N]['of'] extends (D extends 'app' ? D | 'setting' : D) ? N : never
}[PublicationName]

/** The keys of a topic's payload, in any of its forms; plain text has no keys. */
type FieldOf<N extends PublicationName> = KeyOf<Payload<N>>
type KeyOf<P> = P extends string ? never : keyof P & string

interface Common {
  /** This key is part of the unique id, so never change it. */
  readonly key: string
  /** The displayed name without the device's name; `null` for the main entity of the device. */
  readonly name: string | null
  /** One sentence for the documentation. */
  readonly doc: string
  readonly category?: 'config' | 'diagnostic'
  /** Set if the entity is disabled by default. */
  readonly enabled?: false
  readonly icon?: `mdi:${string}`
  /**
   * What must be online for the entity to be available; default: the bridge and the hub, but only the bridge for the
   * entities of the bridge's device.
   */
  readonly needs?: 'bridge' | 'nothing'
  /** The entity exists only if the guardian is on. */
  readonly when?: 'guard'
  /** The entity exists only if the API key and the hub permit this operation. */
  readonly from?: OperationName
  /** Name of the setting that the entity shows. */
  readonly setting?: string
}

/**
 * The topic that an entity reads, and templates of its state (`template`; default: the unchanged payload) and of
 * additional attributes.
 */
type Reads<D extends DeviceKind, T extends 'template' | 'attributes' = 'template'> = {
  readonly [N in Readable<D>]: { readonly reads: N } & { readonly [K in T]?: Template<FieldOf<N>> }
}[Readable<D>]

interface Sends<D extends DeviceKind> {
  /** Name of the command, for the same kind of device. */
  readonly sends: CommandName<D>
}

interface Renders {
  /** Template of the payload for a value; default: the value. */
  readonly sendsAs?: string
}

interface OnOff {
  readonly on: string
  readonly off: string
}

/** The kind of a sensor's values: amounts, words from a list, or times. */
export type Measure =
  | {
      readonly stateClass: 'measurement' | 'total_increasing'
      readonly unit?: string
      readonly deviceClass?: 'data_size' | 'temperature'
      /** Number of decimals shown; the state may have more. */
      readonly decimals?: number
      readonly options?: never
    }
  | ({ readonly options: readonly string[]; readonly deviceClass?: never } & NoAmount)
  | ({ readonly deviceClass?: 'timestamp'; readonly options?: never } & NoAmount)

type NoAmount = { readonly [K in 'stateClass' | 'unit' | 'decimals']?: never }

type ByPlatform<D extends DeviceKind> =
  | ({ readonly platform: 'sensor'; readonly shows?: Measure } & Reads<D>)
  | ({
      readonly platform: 'binary_sensor'
      readonly deviceClass: 'connectivity' | 'problem' | 'running'
    } & Reads<D, 'template' | 'attributes'> &
      OnOff)
  | ({ readonly platform: 'switch' } & Reads<D> & Sends<D> & OnOff)
  | ({
      readonly platform: 'button'
      /** The payload that the button sends; default: `PRESS`. */
      readonly press?: string
    } & Sends<D>)
  | ({ readonly platform: 'update' } & Reads<D> & Sends<D>)
  | ({
      readonly platform: 'event'
      readonly types: readonly EventType[]
      /** Additional types if the guardian is on. */
      readonly guardTypes: readonly EventType[]
    } & Reads<D>)
  | ({ readonly platform: 'notify' } & Sends<D> & Renders)
  | ({ readonly platform: 'text'; readonly mode?: 'password' } & Partial<Reads<D>> & Sends<D> & Renders)
  | ({ readonly platform: 'select'; readonly options: readonly string[] } & Reads<D> & Sends<D> & Renders)
  | ({ readonly platform: 'number'; readonly min: number; readonly max: number; readonly step?: number } & Reads<D> &
      Sends<D>)

type RowOf<D extends DeviceKind> = Common & ByPlatform<D>
export type EntityOf<D extends DeviceKind> = { readonly device: D } & RowOf<D>
export type Entity = EntityOf<'app'> | EntityOf<'hub'> | EntityOf<'bridge'>
export type Platform = Entity['platform']

export function entitiesOf<D extends DeviceKind>(device: D, rows: readonly RowOf<D>[]): EntityOf<D>[]
export function entitiesOf(device: DeviceKind, rows: readonly object[]): object[] {
  return rows.map((row) => ({ device, ...row }))
}

/** Returns the command that an entity sends, if any. @throws Error if the command does not exist */
export function commandOf(entity: Entity): Command | undefined {
  if (!('sends' in entity)) return undefined
  const command = findCommand(entity.device, entity.sends, entity.setting !== undefined)
  if (command === undefined) throw new Error(`the entity ${entity.key} sends ${entity.sends}, which is not a command`)
  return command
}

/** Returns whether an entity is offered. @param hub `undefined` for the bridge's own entities */
export function isOffered(entity: Entity, hub: Pick<Hub, 'permits'> | undefined, policy: CommandPolicy): boolean {
  if (entity.when === 'guard' && !policy.guarded) return false
  if (entity.from !== undefined && hub?.permits(entity.from) !== 'yes') return false
  if (entity.setting !== undefined && hub?.permits('getAppSettings') !== 'yes') return false
  const command = commandOf(entity)
  if (command === undefined) return true
  if (!mayUse(policy, command)) return false
  return command.target === 'bridge' || (hub !== undefined && permission(hub, command) === 'yes')
}

/** Adds the event types that exist only while the guardian is on. */
export function guardedForm(entity: Entity): Entity {
  return entity.platform === 'event' ? { ...entity, types: [...entity.types, ...entity.guardTypes] } : entity
}
