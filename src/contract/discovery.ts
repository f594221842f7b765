/** Where Home Assistant looks for devices, and the names of things there: reversible, and the same whatever a hub is called. */
import * as v from 'valibot'
import { readJson } from '../base/read-json.ts'
import type { HubStatus } from '../hub/status.ts'
import { PUBLICATIONS } from './publications.ts'
import { Template } from './templates.ts'

/** What a discovery topic or a unique id is about. */
export type Owner =
  | { readonly kind: 'app'; readonly hubId: string; readonly app: string }
  | { readonly kind: 'hub'; readonly hubId: string }
  | { readonly kind: 'bridge'; readonly hubId: string }

export type Form = 'device' | 'component'

/** A discovery topic of ours, read back. */
export interface DiscoveryTopic {
  readonly prefix: string
  readonly form: Form
  readonly objectId: string
  readonly owner: Owner
}

const NODE = 'hub2mqtt'
const SEPARATOR = '--'
const FORMS = [PUBLICATIONS.discoveryDevice.topic, PUBLICATIONS.discoveryComponent.topic] as const
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * An id in the few characters that Home Assistant takes in a topic: `.` becomes `_`, any other byte but letters and
 * digits `-XX`, nothing at all `-0`. No two ids look the same, and none contains the separator or ends in half of it.
 */
export function encodeId(id: string): string {
  if (id === '') return '-0'
  // Nearly all ids; of many hubs there are many.
  if (/^[A-Za-z0-9.]+$/.test(id)) return id.replaceAll('.', '_')
  let encoded = ''
  for (const byte of encoder.encode(id)) {
    const char = String.fromCharCode(byte)
    if (/[A-Za-z0-9]/.test(char)) encoded += char
    else encoded += char === '.' ? '_' : `-${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}

/** The id that was encoded; `undefined` if none is encoded like that. */
export function decodeId(encoded: string): string | undefined {
  if (encoded === '-0') return ''
  if (/^[A-Za-z0-9_]+$/.test(encoded)) return encoded.replaceAll('_', '.')
  const bytes: number[] = []
  for (const [part] of encoded.matchAll(/-[0-9A-F]{2}|[A-Za-z0-9]|_|./gsu)) {
    if (part.length === 3) bytes.push(Number.parseInt(part.slice(1), 16))
    else bytes.push(...encoder.encode(part === '_' ? '.' : part))
  }
  try {
    const id = decoder.decode(new Uint8Array(bytes))
    return encodeId(id) === encoded ? id : undefined
  } catch {
    return undefined
  }
}

/**
 * What stands for the id of a hub: its own, or its name in the configuration if it shows none. An id comes from an
 * HTTP header, which never begins with a space. `null`: it has not answered yet, and may well have one. Never change it.
 */
export function hubIdOf(name: string, { id, api }: Pick<HubStatus, 'id' | 'api'>): string | null {
  return id ?? (api === null ? null : ` ${name}`)
}

/** The name of the hub for which `hubId` stands because it showed no id; `undefined` for an id. */
export const nameIn = (hubId: string): string | undefined => (hubId.startsWith(' ') ? hubId.slice(1) : undefined)

/** The name under which a device is discovered, and the beginning of its entities' unique ids: never change it. */
export function objectIdOf(owner: Owner): string {
  if (owner.kind === 'bridge') return [`${NODE}-bridge`, encodeId(owner.hubId)].join(SEPARATOR)
  const parts = [NODE, encodeId(owner.hubId), ...(owner.kind === 'app' ? [encodeId(owner.app)] : [])]
  return parts.join(SEPARATOR)
}

/** Whether an object id is `other` itself or that of one of its apps. */
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

/** Everything of ours below one discovery prefix: in the filters, other people's devices come along. */
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

/** Name of the origin in the messages of every hub2mqtt. */
export const ORIGIN = 'hub2mqtt'
const MESSAGE = v.object({ origin: v.object({ name: v.literal(ORIGIN) }) })

/** Whether a discovery message was published by hub2mqtt (any instance). */
export const isOfBridge = (payload: string): boolean => readJson(MESSAGE, payload) !== undefined

/** Reads a topic under any prefix; `undefined` if it is not one of ours. */
export function parseDiscoveryTopic(topic: string): DiscoveryTopic | undefined {
  const device = /^(.+)\/device\/([A-Za-z0-9_-]+)\/config$/.exec(topic)
  const component = device === null ? /^(.+)\/[a-z_]+\/hub2mqtt\/([A-Za-z0-9_-]+)\/config$/.exec(topic) : null
  const [, prefix, name] = device ?? component ?? []
  if (prefix === undefined || name === undefined) return undefined
  const objectId = device === null ? name.slice(0, name.lastIndexOf(SEPARATOR)) : name
  const owner = ownerOf(objectId)
  return owner && { prefix, form: device === null ? 'component' : 'device', objectId, owner }
}
