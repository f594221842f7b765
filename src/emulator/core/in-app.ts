/** The hub's interface for running apps: calls, with the permissions in the app's record, and event subscriptions. */
import type { EventEmitter } from 'node:events'
import { HubError } from '../hub-error.ts'
import { type Needs, normaliseScope, permits } from '../scopes.ts'
import type { Core } from './endpoint.ts'
import type { HubApps } from './hub-apps.ts'
import { NOTIFICATIONS_URI } from './managers/household.ts'
import { find, type NamedCall } from './table.ts'

export const APPS_URI = 'homey:manager:apps'

const MANAGERS: ReadonlyMap<string, Needs> = new Map([
  [APPS_URI, 'homey.app.readonly'],
  [NOTIFICATIONS_URI, 'homey.notifications.readonly'],
])

/** Returns the permission that a subscription requires, and the app that owns the events. @throws HubError 404 */
export function watchable(uri: string, apps: HubApps): { needs: Needs; owner?: string } {
  const needs = MANAGERS.get(uri)
  if (needs !== undefined) return { needs }
  const owner = uri.match(/^homey:app:(.+)$/)?.[1]
  if (owner !== undefined && apps.records.has(owner)) return { needs: 'homey.app.control', owner }
  throw new HubError(404, 'not_found', 'There are no events with this URI')
}

type Listener = (event: string, payload: unknown) => void

export type InApp = ReturnType<typeof inAppInterface>

export function inAppInterface(core: Core, events: EventEmitter) {
  const scopesOf = (id: string): readonly string[] => {
    const record = core.apps.records.get(id)
    if (record === undefined) throw new HubError(404, 'not_found', 'App Not Found')
    const permissions: unknown = record['permissions']
    if (!Array.isArray(permissions)) return []
    return permissions.filter((permission) => typeof permission === 'string').map(normaliseScope)
  }
  return {
    /** Runs one operation of the hub's table, with the permissions of the app. Rejects with `HubError`. */
    async call(appId: string, request: NamedCall): Promise<unknown> {
      const scopes = scopesOf(appId)
      const { endpoint, args } = find(request, core.flavour)
      if (!endpoint.own) permits(scopes, endpoint.needs)
      return await endpoint.perform(core, args, { scopes, app: appId })
    },

    /** Subscribes to a URI such as `homey:manager:apps`. Returns the unsubscribe function. @throws HubError 403, 404 */
    subscribe(appId: string, uri: string, listener: Listener): () => void {
      const scopes = scopesOf(appId)
      const { needs, owner } = watchable(uri, core.apps)
      if (owner !== appId) permits(scopes, needs)
      events.on(uri, listener)
      return () => void events.off(uri, listener)
    },

    emit: (appId: string, event: string, payload: unknown) => core.sendEvent(`homey:app:${appId}`, event, payload),
  }
}
