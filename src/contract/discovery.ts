/** Creates and parses Home Assistant's discovery topics and object ids, which contain the hub's id, not its name. */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'
import type { HubStatus } from '../hub/status.ts'
import { PUBLICATIONS } from './publications.ts'
import { percentEncoded, Template } from './templates.ts'

export type Owner =
  | { readonly kind: 'app'; readonly hubId: string; readonly app: string }
  | { readonly kind: 'hub'; readonly hubId: string }
  | { readonly kind: 'bridge'; readonly hubId: string }

export type Form = 'device' | 'component'

const NODE = 'hub2mqtt'
const SEPARATOR = '--'
const FORMS = [PUBLICATIONS.discoveryDevice.topic, PUBLICATIONS.discoveryComponent.topic] as const

/**
 * Encodes an id for Home Assistant's topics, which allow few characters: `.` becomes `_`, an empty id becomes `-0`, and
 * any other byte except letters and digits becomes `-XX`. The result is unique, never contains the separator, and never
 * ends in `-`.
 */
export function encodeId(id: string): string {
  if (id === '') return '-0'
  return percentEncoded(id, /[!'()*~_-]/g)
    .replaceAll('.', '_')
    .replaceAll('%', '-')
}

/** Returns the id that was encoded; `undefined` if no id has this encoding. */
export function decodeId(encoded: string): string | undefined {
  if (encoded === '-0') return ''
  try {
    const id = decodeURIComponent(encoded.replaceAll('_', '.').replaceAll('-', '%'))
    return encodeId(id) === encoded ? id : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the hub's id, or a space and the configured name if the hub sends no id. Ids come from an HTTP header, whose
 * value never begins with a space. `null` before the first response. Never change the format, because unique ids
 * contain the result.
 */
export function hubIdOf(name: string, { id, api }: Pick<HubStatus, 'id' | 'api'>): string | null {
  return id ?? (api === null ? null : ` ${name}`)
}

/** Returns the configured name in `hubId`; `undefined` if the hub has sent the id. */
export const nameIn = (hubId: string): string | undefined => (hubId.startsWith(' ') ? hubId.slice(1) : undefined)

/** Returns a device's object id, which is also the prefix of its entities' unique ids. Never change the format. */
export function objectIdOf(owner: Owner): string {
  if (owner.kind === 'bridge') return [`${NODE}-bridge`, encodeId(owner.hubId)].join(SEPARATOR)
  const parts = [NODE, encodeId(owner.hubId), ...(owner.kind === 'app' ? [encodeId(owner.app)] : [])]
  return parts.join(SEPARATOR)
}

/** Returns whether an object id is the hub's object id `other`, or belongs to an app of that hub. */
export function belongsTo(objectId: string, other: string): boolean {
  return objectId === other || objectId.startsWith(`${other}${SEPARATOR}`)
}

export function uniqueId(objectId: string, key: string): string {
  return `${objectId}${SEPARATOR}${key}`
}

function ownerOf(objectId: string): Owner | undefined {
  const [node, ...encoded] = objectId.split(SEPARATOR)
  const [hubId, app] = encoded.map(decodeId)
  if (hubId === undefined || encoded.length > 2) return undefined
  if (node === `${NODE}-bridge`) return encoded.length === 1 ? { kind: 'bridge', hubId } : undefined
  if (node !== NODE) return undefined
  if (encoded.length === 1) return { kind: 'hub', hubId }
  return app === undefined ? undefined : { kind: 'app', hubId, app }
}

/** Returns the filters for all topics of bridges under a discovery prefix. They also match devices of other clients. */
export function discoveryFilters(prefix: string): string[] {
  return FORMS.map((topic) => new Template(topic, prefix).fill())
}

export type DiscoveryTopics = ReturnType<typeof createDiscoveryTopics>

export function createDiscoveryTopics(prefix: string) {
  const device = new Template(PUBLICATIONS.discoveryDevice.topic, prefix)
  const component = new Template(PUBLICATIONS.discoveryComponent.topic, prefix)
  return {
    prefix,
    device: (object_id: string) => device.fill({ object_id }),
    component: (platform: string, objectId: string, key: string) =>
      component.fill({ platform, unique_id: uniqueId(objectId, key) }),
  }
}

export const ORIGIN = 'hub2mqtt'
const MESSAGE = v.object({ origin: v.object({ name: v.literal(ORIGIN) }) })

/** Returns whether a discovery message is from any hub2mqtt instance. */
export const isOfBridge = (payload: string): boolean => readJson(MESSAGE, payload) !== undefined

export type DiscoveryTopic = NonNullable<ReturnType<typeof parseDiscoveryTopic>>

/** Parses a discovery topic of a bridge under any prefix; returns `undefined` for other topics. */
export function parseDiscoveryTopic(topic: string) {
  const device = /^(.+)\/device\/([A-Za-z0-9_-]+)\/config$/.exec(topic)
  const component = device === null ? /^(.+)\/[a-z_]+\/hub2mqtt\/([A-Za-z0-9_-]+)\/config$/.exec(topic) : null
  const [, prefix, name] = device ?? component ?? []
  if (prefix === undefined || name === undefined) return undefined
  const objectId = device === null ? name.slice(0, name.lastIndexOf(SEPARATOR)) : name
  const form: Form = device === null ? 'component' : 'device'
  const owner = ownerOf(objectId)
  return owner && { prefix, form, objectId, owner }
}
