/** One look at the hub after a write that was not answered: is what was asked for so? Each may throw a HubError. */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../base/json.ts'
import type { AppPatch } from '../model/app.ts'
import { HubError, type HubErrorCode } from './errors.ts'
import type { Hub } from './hub.ts'

/** Whether the app is there and is what a patch says, by the hub's own word and not by what is remembered. */
export async function appIs(
  hub: Hub,
  id: string,
  wanted: { readonly [K in keyof AppPatch]: AppPatch[K] | undefined },
): Promise<boolean> {
  const found = new Map<string, unknown>(Object.entries(await hub.call('getApp', { id })))
  return Object.entries(wanted).every(([key, value]) => value === undefined || found.get(key) === value)
}

export function appIsGone(hub: Hub, id: string): Promise<boolean> {
  return refused(hub.call('getApp', { id }), 'unknown_app')
}

export async function settingIs(hub: Hub, id: string, name: string, value: Json): Promise<boolean> {
  return isDeepStrictEqual(await hub.call('getAppSetting', { id, name }), value)
}

export function settingIsGone(hub: Hub, id: string, name: string): Promise<boolean> {
  return refused(hub.call('getAppSetting', { id, name }), 'unknown_setting')
}

async function refused(read: Promise<unknown>, code: HubErrorCode): Promise<boolean> {
  try {
    await read
    return false
  } catch (error) {
    if (error instanceof HubError && error.code === code) return true
    throw error
  }
}
