/** What can be listened to, from outside and inside alike. */
import { HubError } from '../hub-error.ts'
import type { Needs } from '../scopes.ts'
import type { HubApps } from './hub-apps.ts'
import { NOTIFICATIONS_URI } from './managers/household.ts'

export const APPS_URI = 'homey:manager:apps'

const MANAGERS: ReadonlyMap<string, Needs> = new Map([
  [APPS_URI, 'homey.app.readonly'],
  [NOTIFICATIONS_URI, 'homey.notifications.readonly'],
])

/** What listening takes, and which app owns the events. @throws HubError 404 */
export function watchable(uri: string, apps: HubApps): { needs: Needs; owner?: string } {
  const needs = MANAGERS.get(uri)
  if (needs !== undefined) return { needs }
  const owner = uri.match(/^homey:app:(.+)$/)?.[1]
  if (owner !== undefined && apps.records.has(owner)) return { needs: 'homey.app.control', owner }
  throw new HubError(404, 'not_found', 'Nothing to subscribe to by this name')
}
