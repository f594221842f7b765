/** From what is known of an app, a hub or the bridge to the device that Home Assistant shall see. */

import { tidy } from '../../base/text.ts'
import type { Topics } from '../../contract/topics.ts'
import type { App } from '../../model/app.ts'
import type { Change } from '../../model/reduce.ts'
import { type Component, componentOf, type Place } from './component.ts'
import { type Owner, objectIdOf } from './discovery-topics.ts'
import type { Entity } from './entity.ts'
import { hubName, slug } from './names.ts'

export const ORIGIN = 'hub2mqtt'

/** Only keys that Home Assistant knows: one other, and it drops the device. */
export interface DeviceInfo {
  readonly identifiers: readonly string[]
  readonly name: string
  readonly manufacturer?: string | undefined
  readonly model?: string | undefined
  readonly model_id?: string | undefined
  readonly sw_version?: string | undefined
  readonly configuration_url?: string | undefined
  readonly via_device?: string | undefined
}

export interface Availability {
  readonly topic: string
}

export interface OfferedComponent {
  readonly component: Component
  readonly availability: readonly Availability[]
}

export interface Device {
  readonly objectId: string
  readonly info: DeviceInfo
  readonly origin: { readonly name: string; readonly sw_version: string }
  /** Of its components, unless they say otherwise. */
  readonly availability: readonly Availability[]
  /** By the entity's key. */
  readonly components: ReadonlyMap<string, OfferedComponent>
}

/** What a hub's devices have in common. */
export interface HubFacts {
  /** As configured. */
  readonly name: string
  readonly id: string
  readonly firmware: string | null
  readonly url: string
}

export interface Surroundings {
  readonly topics: Topics
  /** Version of the bridge. */
  readonly version: string
  /** The id of the hub by which the bridge is known; `null` while none has told it. */
  readonly bridgeId: string | null
}

export function bridgeDevice(entities: readonly Entity[], { topics, version }: Surroundings, bridgeId: string): Device {
  return assemble(entities, {
    owner: { kind: 'bridge', hubId: bridgeId },
    info: { name: 'hub2mqtt', model: 'MQTT bridge', sw_version: version },
    slug: 'hub2mqtt',
    version,
    topics,
    availability: [bridgeState(topics)],
    parameters: {},
    command: (name) => topics.bridgeCommand(name),
  })
}

export function hubDevice(
  entities: readonly Entity[],
  hub: HubFacts,
  { topics, version, bridgeId }: Surroundings,
): Device {
  const { name } = hub
  const shown = hubName(name)
  return assemble(entities, {
    owner: { kind: 'hub', hubId: hub.id },
    info: {
      name: shown,
      model: 'Hub',
      sw_version: tidy(hub.firmware),
      configuration_url: new URL(hub.url).origin,
      ...(bridgeId !== null && { via_device: objectIdOf({ kind: 'bridge', hubId: bridgeId }) }),
    },
    slug: slug(shown),
    version,
    topics,
    availability: bothStates(topics, name),
    parameters: { hub: name },
    command: (command) => topics.hubCommand(name, command),
  })
}

export function appDevice(
  entities: readonly Entity[],
  hub: HubFacts,
  app: Pick<App, 'id' | 'name' | 'version' | 'author'>,
  { topics, version }: Surroundings,
): Device {
  const { id } = app
  const shown = tidy(app.name) ?? tidy(id) ?? 'App'
  return assemble(entities, {
    owner: { kind: 'app', hubId: hub.id, app: id },
    info: {
      name: shown,
      manufacturer: tidy(app.author),
      model: 'App',
      model_id: tidy(id),
      sw_version: tidy(app.version),
      via_device: objectIdOf({ kind: 'hub', hubId: hub.id }),
    },
    slug: slug(shown) || slug(id) || 'app',
    version,
    topics,
    availability: bothStates(topics, hub.name),
    parameters: { hub: hub.name, app: id },
    command: (command, setting) => topics.appCommand(hub.name, id, command, setting),
  })
}

/** Whether a change alters the device of an app itself. */
export function deviceDiffers({ before, after }: Change): boolean {
  return before?.name !== after?.name || before?.version !== after?.version || before?.author !== after?.author
}

interface Parts {
  readonly owner: Owner
  readonly info: Omit<DeviceInfo, 'identifiers'>
  readonly slug: string
  readonly version: string
  readonly topics: Topics
  readonly availability: readonly Availability[]
  /** Of the topics that the entities read. */
  readonly parameters: Readonly<Record<string, string>>
  readonly command: (name: string, setting?: string) => string
}

function assemble(entities: readonly Entity[], parts: Parts): Device {
  const { availability, parameters, topics, version } = parts
  const objectId = objectIdOf(parts.owner)
  const place: Place = {
    objectId,
    slug: parts.slug,
    stateTopic: (entity) => {
      if (!('reads' in entity) || entity.reads === undefined) return undefined
      const { reads, setting: name } = entity
      return topics.fill(reads, name === undefined ? parameters : { ...parameters, name })
    },
    commandTopic: (entity) => ('sends' in entity ? parts.command(entity.sends, entity.setting) : undefined),
  }
  const needs = { nothing: [], bridge: [bridgeState(topics)] } as const
  const offered = entities.map((entity): [string, OfferedComponent] => [
    entity.key,
    { component: componentOf(entity, place), availability: entity.needs ? needs[entity.needs] : availability },
  ])
  return {
    objectId,
    info: { identifiers: [objectId], ...parts.info },
    origin: { name: ORIGIN, sw_version: version },
    availability,
    components: new Map(offered),
  }
}

function bridgeState(topics: Topics): Availability {
  return { topic: topics.of('bridgeState', {}) }
}

function bothStates(topics: Topics, hub: string): Availability[] {
  return [bridgeState(topics), { topic: topics.of('hubState', { hub }) }]
}
