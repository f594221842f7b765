import { tidy } from '../base/text.ts'
import { SUPPORT_URL } from '../base/version.ts'
import { ORIGIN, type Owner, objectIdOf } from '../contract/discovery.ts'
import type { Topics } from '../contract/topics.ts'
import { storePage } from '../contract/update-state.ts'
import type { App, Change } from '../hub/app.ts'
import type { ApiPrefix } from '../hub/proven-hub.ts'
import { type Component, componentOf, type Place, triggerOf } from './component.ts'
import type { Entity } from './entity.ts'
import { type Trigger, triggerKey } from './triggers.ts'

/** The information about a device. Home Assistant ignores a device if this object has a key that it does not know. */
interface DeviceInfo {
  readonly identifiers: readonly string[]
  readonly name: string
  readonly manufacturer?: string | undefined
  readonly model?: string | undefined
  readonly model_id?: string | undefined
  readonly sw_version?: string | undefined
  readonly configuration_url?: string | undefined
  readonly via_device?: string | undefined
}

export interface OfferedComponent {
  readonly component: Component
  readonly availability: readonly { readonly topic: string }[]
}

export type Device = Readonly<ReturnType<typeof assemble>>

/** The facts that all devices of a hub share. */
export interface HubFacts {
  readonly name: string
  /** The hub's own id, or a substitute. */
  readonly id: string
  readonly firmware: string | null
  readonly api: ApiPrefix | null
  readonly url: string
}

export interface Surroundings {
  readonly topics: Topics
  /** Version of the bridge. */
  readonly version: string
  /** The hub id that identifies the bridge's device; `null` if no id is known. */
  readonly bridgeId: string | null
  /** Whether there are other hubs, which may have the same apps. */
  readonly severalHubs: boolean
  /** The page's address for browsers; `null` if unknown. */
  readonly publicUrl: string | null
  readonly triggers: readonly Trigger[]
}

export function bridgeDevice(entities: readonly Entity[], surroundings: Surroundings, bridgeId: string): Device {
  const { topics, version, publicUrl } = surroundings
  return assemble(entities, surroundings, {
    owner: { kind: 'bridge', hubId: bridgeId },
    info: {
      name: 'hub2mqtt',
      manufacturer: 'hub2mqtt',
      model: 'MQTT bridge',
      sw_version: version,
      configuration_url: below(publicUrl, '#/bridge'),
    },
    parameters: {},
    command: (name) => topics.bridgeCommand(name),
  })
}

export function hubDevice(entities: readonly Entity[], hub: HubFacts, surroundings: Surroundings): Device {
  const { name } = hub
  const { topics, bridgeId } = surroundings
  return assemble(entities, surroundings, {
    owner: { kind: 'hub', hubId: hub.id },
    info: {
      name: hubName(name),
      // Guess the model from the form of the API, because an API key that may only read apps cannot read the model.
      ...(hub.api === 'manager' ? { manufacturer: 'Athom', model: 'Homey' } : { model: 'Hub' }),
      sw_version: tidy(hub.firmware),
      configuration_url: new URL(hub.url).origin,
      ...(bridgeId !== null && { via_device: objectIdOf({ kind: 'bridge', hubId: bridgeId }) }),
    },
    parameters: { hub: name },
    command: (command) => topics.hubCommand(name, command),
  })
}

export function appDevice(
  entities: readonly Entity[],
  hub: HubFacts,
  app: Pick<App, (typeof SHOWN)[number]>,
  surroundings: Surroundings,
): Device {
  const { topics, severalHubs, publicUrl, triggers } = surroundings
  const { id } = app
  const [hubLevel, idLevel] = [hub.name, id].map(encodeURIComponent)
  const title = tidy(app.name)
  const shown = title ?? tidy(id) ?? 'App'
  return assemble(entities, surroundings, {
    owner: { kind: 'app', hubId: hub.id, app: id },
    info: {
      name: severalHubs ? appName(shown, hub.name) : shown,
      manufacturer: tidy(app.author),
      model: 'Hub app',
      model_id: tidy(id),
      sw_version: tidy(app.version),
      configuration_url: below(publicUrl, `#/app/${hubLevel}/${idLevel}`),
      via_device: objectIdOf({ kind: 'hub', hubId: hub.id }),
    },
    software: {
      title,
      picture: below(publicUrl, `api/hubs/${hubLevel}/apps/${idLevel}/icon`),
      releaseUrl: app.origin === 'appstore' ? storePage(id) : undefined,
    },
    triggers,
    parameters: { hub: hub.name, app: id },
    command: (command, setting) => topics.appCommand(hub.name, id, command, setting),
  })
}

export const deviceDiffers = ({ before, after }: Change): boolean => SHOWN.some((key) => before?.[key] !== after?.[key])

/** The fields from which an app's device is created. */
const SHOWN = ['id', 'name', 'version', 'author', 'origin'] as const satisfies readonly (keyof App)[]

function below(publicUrl: string | null, path: string): string | undefined {
  return publicUrl === null ? undefined : `${publicUrl}/${path}`
}

interface Parts extends Omit<Place, 'objectId' | 'topics'> {
  readonly owner: Owner
  readonly info: Omit<DeviceInfo, 'identifiers'>
  readonly triggers?: readonly Trigger[]
}

function assemble(entities: readonly Entity[], { topics, version }: Surroundings, parts: Parts) {
  const { parameters, triggers = [] } = parts
  const { hub } = parameters
  const bridge = { topic: topics.hubsAvailability }
  const availability = hub === undefined ? [bridge] : [bridge, { topic: topics.of('hubState', { hub }) }]
  const objectId = objectIdOf(parts.owner)
  const place: Place = { objectId, topics, ...parts }
  const needs = { nothing: [], bridge: [bridge] } as const
  const offered = entities.map((entity): [string, OfferedComponent] => [
    entity.key,
    { component: componentOf(entity, place), availability: entity.needs ? needs[entity.needs] : availability },
  ])
  const triggered = triggers.map((trigger): [string, OfferedComponent] => [
    triggerKey(trigger),
    { component: triggerOf(trigger, topics.fill('appEvent', parameters)), availability },
  ])
  const info: DeviceInfo = { identifiers: [objectId], ...parts.info }
  return {
    objectId,
    info,
    origin: { name: ORIGIN, sw_version: version, support_url: SUPPORT_URL },
    /** The default availability of the device's components. */
    availability,
    /** The components, keyed by the key of their entity or trigger. */
    components: new Map([...offered, ...triggered]),
  }
}

const MAX_NAME = 100

/** Returns a name such as `Summer house hub` for `summer-house`. */
function hubName(configured: string): string {
  const words = humanise(configured)
  return /\bhub$/i.test(words) ? words : `${words} hub`
}

/** Returns a name such as `Philips Hue (Summer house)`, because other hubs may have the same app. */
function appName(app: string, hub: string): string {
  const suffix = ` (${humanise(hub)})`
  return `${tidy(app, MAX_NAME - suffix.length)}${suffix}`
}

/** Returns a text such as `Night mode` for `night_mode` or `nightMode`. */
export function humanise(key: string): string {
  const words = key
    .replace(/([a-z0-9])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`)
    .replace(/[_-]+/g, ' ')
    .trim()
  return words === '' ? key : words.charAt(0).toUpperCase() + words.slice(1)
}
