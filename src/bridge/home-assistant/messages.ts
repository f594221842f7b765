/** The discovery messages of a device: what Home Assistant's broker shall hold, in either form. */
import { isRecord } from '../../base/json.ts'
import type { Device } from './device.ts'
import type { DiscoveryTopics, Form } from './discovery-topics.ts'

/** Announces to Home Assistant that the entities of a topic are about to come from another one. */
export const MIGRATE = JSON.stringify({ migrate_discovery: true })

const MODE = { availability_mode: 'all' } as const

/** Topic → payload. */
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

/** Component → platform. Equal ones are the same object: of thousands of apps all are. */
export type Platforms = ReadonlyMap<string, string>

const known = new Map<string, Platforms>()

function same(entries: readonly (readonly [string, string])[]): Platforms {
  const text = JSON.stringify(entries)
  const platforms = known.get(text) ?? new Map(entries)
  // Payloads of others could make it grow without end.
  if (known.size < MAX_KNOWN) known.set(text, platforms)
  return platforms
}

const MAX_KNOWN = 1_000

/** Of a device; empty for none. */
export function platformsOf(device: Device | undefined): Platforms {
  return same([...(device?.components ?? [])].map(([key, { component }]) => [key, component.platform]))
}

/** Of a device's message; empty for what is no payload of ours. */
export function platformsIn(payload: string): Platforms {
  const components = read(payload)['components']
  const found = Object.entries(isRecord(components) ? components : {}).flatMap(([key, component]) => {
    const platform = isRecord(component) ? component['platform'] : undefined
    return typeof platform === 'string' ? [[key, platform] as const] : []
  })
  return same(found)
}

/**
 * The payload that takes away what there was before and is not any more, or `undefined` if there is no such thing:
 * leaving a component out removes nothing, it must first be named with nothing but its platform.
 */
export function withStubs(before: Platforms, now: Platforms, payload: string): string | undefined {
  if (before === now) return undefined
  const gone = [...before].filter(([key, platform]) => now.get(key) !== platform)
  if (gone.length === 0) return undefined
  const whole: unknown = JSON.parse(payload)
  if (!isRecord(whole) || !isRecord(whole['components'])) return undefined
  const stubs = Object.fromEntries(gone.map(([key, platform]) => [key, { platform }]))
  return JSON.stringify({ ...whole, components: { ...whole['components'], ...stubs } })
}

/** Name of the origin of a payload that the broker holds. */
export function originOf(payload: string): string | undefined {
  const origin = read(payload)['origin']
  return isRecord(origin) && typeof origin['name'] === 'string' ? origin['name'] : undefined
}

function read(payload: string): Readonly<Record<string, unknown>> {
  // As of each device that is new, or was too much to keep; an error takes longer than all the rest.
  if (payload === '') return {}
  try {
    const parsed: unknown = JSON.parse(payload)
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}
