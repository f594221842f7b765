/** The discovery messages of a device. There is either one message for the device, or one for each component. */
import { isRecord, parseJson } from '../base/json.ts'
import type { DiscoveryTopics, Form } from '../contract/discovery.ts'
import type { Device, OfferedComponent } from './device.ts'

/** Announces that the entities of a topic will move to a different topic. */
export const MIGRATE = JSON.stringify({ migrate_discovery: true })

const MODE = { availability_mode: 'all' } as const

/** Returns the payloads by topic. */
export function messagesOf(device: Device, form: Form, topics: DiscoveryTopics): Map<string, string> {
  return form === 'device' ? asDevice(device, topics) : asComponents(device, topics)
}

function asDevice({ objectId, info, origin, availability, components }: Device, topics: DiscoveryTopics) {
  const entries = [...components].map(([key, offered]) => {
    const own = offered.availability === availability ? {} : { availability: offered.availability }
    return [key, { ...offered.component, ...own }]
  })
  const payload = { device: info, origin, availability, ...MODE, components: Object.fromEntries(entries) }
  return new Map([[topics.device(objectId), JSON.stringify(payload)]])
}

function asComponents({ objectId, info, origin, components }: Device, topics: DiscoveryTopics) {
  const entries = [...components].map(([key, { component, availability }]): [string, string] => {
    const { platform, ...rest } = component
    const payload = { ...rest, device: info, origin, availability, ...MODE }
    return [topics.component(platform, objectId, key), JSON.stringify(payload)]
  })
  return new Map(entries)
}

/**
 * Component → platform, for the components that can be removed. Components that are disabled by default are excluded:
 * if a stub names a component that was never enabled, Home Assistant 2026.4 to 2026.10 clears the whole device. Equal
 * values share one object, because thousands of apps have the same components.
 */
export type Platforms = ReadonlyMap<string, string>

const cache = new Map<string, Platforms>()

function shared(entries: readonly (readonly [string, string])[]): Platforms {
  const text = JSON.stringify(entries)
  const platforms = cache.get(text) ?? new Map(entries)
  // Limit the cache, because payloads from other clients could otherwise make it grow without end.
  if (cache.size < MAX_KNOWN) cache.set(text, platforms)
  return platforms
}

const MAX_KNOWN = 1_000

export function platformsOf(device: Device | undefined): Platforms {
  return shared([...(device?.components ?? [])].flatMap(([key, { component }]) => removable(key, component)))
}

/** Returns an empty map if the payload is not a device's message. */
export function platformsIn(payload: string): Platforms {
  // An empty payload means a new device, or a message too large to keep. Parsing it would throw, which is slow.
  const device = payload === '' ? undefined : parseJson(payload)
  const components = isRecord(device) ? device['components'] : undefined
  const found = Object.entries(isRecord(components) ? components : {})
  return shared(found.flatMap(([key, component]) => (isRecord(component) ? removable(key, component) : [])))
}

function removable(key: string, { platform, enabled_by_default }: Readonly<Record<string, unknown>>) {
  return typeof platform === 'string' && enabled_by_default !== false ? [[key, platform] as const] : []
}

/** Keeps components enabled that an earlier message enabled: users have them until a stub removes them. */
export function withFormerDefaults(device: Device, before: Platforms): Device {
  if (before.size === 0) return device
  const entries = [...device.components].map(([key, offered]): [string, OfferedComponent] => {
    const { enabled_by_default, ...component } = offered.component
    const wasOn = enabled_by_default === false && before.get(key) === component.platform
    return [key, wasOn ? { ...offered, component } : offered]
  })
  return { ...device, components: new Map(entries) }
}

/** Adds stubs, which have only a platform, for removed components. Omitting a component does not remove it. */
export function withStubs(before: Platforms, now: Platforms, payload: string): string | undefined {
  if (before === now) return undefined
  const removed = [...before].filter(([key, platform]) => now.get(key) !== platform)
  if (removed.length === 0) return undefined
  const whole: unknown = JSON.parse(payload)
  if (!isRecord(whole) || !isRecord(whole['components'])) return undefined
  const stubs = Object.fromEntries(removed.map(([key, platform]) => [key, { platform }]))
  return JSON.stringify({ ...whole, components: { ...whole['components'], ...stubs } })
}
