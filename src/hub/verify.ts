/**
 * Checks on the hub whether a write was done. Only a valid response that shows the requested state proves it: a 404 may
 * come from a gateway, and a list may be incomplete while the hub is starting. Each check may throw a HubError.
 */
import { isRecord, type Json, sameJson } from '../base/json.ts'
import type { AppPatch } from './app.ts'
import { unless } from './errors.ts'
import type { Hub } from './hub.ts'
import type { Asked } from './written.ts'

const ERROR_KEYS: ReadonlySet<string> = new Set(['error', 'error_description', 'stack', 'code', 'statusCode'])

/** Whether a value is only the body of a refusal: a gateway may send it with status 200. */
export function isErrorBody(value: unknown): boolean {
  return isRecord(value) && value['error'] !== undefined && Object.keys(value).every((key) => ERROR_KEYS.has(key))
}

/** Returns the check for a write; `undefined` if none is possible. */
export function lookFor(hub: Hub, { operation, id, name, shows = {}, value }: Asked) {
  if (id === undefined) return undefined
  if (operation === 'uninstallApp') return () => appIsGone(hub, id)
  if (operation === 'unsetAppSetting' && name !== undefined) return () => settingIsGone(hub, id, name)
  if (name !== undefined && value !== undefined) return () => settingIs(hub, id, name, value)
  return Object.keys(shows).length > 0 ? () => appIs(hub, id, shows) : undefined
}

/** Whether the hub's record of the app has all `wanted` values. Reads from the hub, not from memory. */
async function appIs(hub: Hub, id: string, wanted: AppPatch): Promise<boolean> {
  const found = new Map<string, unknown>(Object.entries(await hub.look('getApp', { id })))
  return Object.entries(wanted).every(([key, value]) => found.get(key) === value)
}

/** An app in a newly read list; `null` if it is certainly gone, `undefined` if the list proves nothing. */
export async function listedApp(hub: Hub, id: string): Promise<AppPatch | null | undefined> {
  const list = await hub.look('getApps', {})
  if (list.has(id)) return list.get(id)
  const others = [...hub.apps.all.keys()].filter((other) => other !== id)
  return list.size > 0 && others.every((other) => list.has(other)) ? null : undefined
}

/** Whether the list has all other apps but not this one, and reading the app fails too. */
async function appIsGone(hub: Hub, id: string): Promise<boolean> {
  if ((await listedApp(hub, id)) !== null) return false
  return (await unless(['unknown_app'], hub.look('getApp', { id }))) === undefined
}

/** Reads all settings: when reading only one, an empty response would also mean `null`. */
async function settingIs(hub: Hub, id: string, name: string, value: Json): Promise<boolean> {
  const found = new Map(Object.entries(await hub.look('getAppSettings', { id }))).get(name)
  return found !== undefined && sameJson(found, value)
}

/** Whether the settings do not contain this one, and reading it by name fails too. */
async function settingIsGone(hub: Hub, id: string, name: string): Promise<boolean> {
  const all = await hub.look('getAppSettings', { id })
  if (isErrorBody(all) || Object.hasOwn(all, name)) return false
  return ((await unless(['unknown_setting'], hub.look('getAppSetting', { id, name }))) ?? null) === null
}
