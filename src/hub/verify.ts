/** After a write without an answer: reads the hub to see whether it was carried out. Each may throw a HubError. */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../base/json.ts'
import type { AppPatch } from '../model/app.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import type { Hub } from './hub.ts'

/** Whether the hub has the app with the `wanted` values; `undefined` matches anything. Reads the hub, not the memory. */
export async function appIs(
  hub: Hub,
  id: string,
  wanted: { readonly [K in keyof AppPatch]: AppPatch[K] | undefined },
): Promise<boolean> {
  const found = new Map<string, unknown>(Object.entries(await hub.call('getApp', { id })))
  return Object.entries(wanted).every(([key, value]) => value === undefined || found.get(key) === value)
}

export function appIsGone(hub: Hub, id: string): Promise<boolean> {
  return failsWith(hub.call('getApp', { id }), 'unknown_app')
}

export async function settingIs(hub: Hub, id: string, name: string, value: Json): Promise<boolean> {
  return isDeepStrictEqual(await hub.call('getAppSetting', { id, name }), value)
}

export function settingIsGone(hub: Hub, id: string, name: string): Promise<boolean> {
  return failsWith(hub.call('getAppSetting', { id, name }), 'unknown_setting')
}

async function failsWith(read: Promise<unknown>, code: HubErrorCode): Promise<boolean> {
  try {
    await read
    return false
  } catch (error) {
    if (error instanceof HubError && error.code === code) return true
    throw error
  }
}
