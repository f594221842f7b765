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

/**
 * The payload that takes away what the one before had and the one after has not, or `undefined` if there is no such
 * thing: leaving a component out removes nothing, it must first be named with nothing but its platform.
 */
export function withStubs(before: string | undefined, after: string): string | undefined {
  if (before === undefined || before === after) return undefined
  const old = platformsOf(before)
  const now = platformsOf(after)
  const gone = [...old].filter(([key, platform]) => now.get(key) !== platform)
  if (gone.length === 0) return undefined
  const payload: unknown = JSON.parse(after)
  if (!isRecord(payload) || !isRecord(payload['components'])) return undefined
  const stubs = Object.fromEntries(gone.map(([key, platform]) => [key, { platform }]))
  return JSON.stringify({ ...payload, components: { ...payload['components'], ...stubs } })
}

/** Platform of each component; empty for what is no payload of ours. */
function platformsOf(payload: string): Map<string, string> {
  const components = read(payload)['components']
  const found = new Map<string, string>()
  for (const [key, component] of Object.entries(isRecord(components) ? components : {})) {
    if (isRecord(component) && typeof component['platform'] === 'string') found.set(key, component['platform'])
  }
  return found
}

/** Name of the origin of a payload that the broker holds. */
export function originOf(payload: string): string | undefined {
  const origin = read(payload)['origin']
  return isRecord(origin) && typeof origin['name'] === 'string' ? origin['name'] : undefined
}

function read(payload: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(payload)
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}
