/** What a running app can request from its hub, with the permissions of its record. */
import { HubError } from '../hub-error.ts'
import { normaliseScope, permits } from '../scopes.ts'
import type { Core } from './endpoint.ts'
import { type Events, type Listener, watchable } from './events.ts'
import { find, type NamedCall } from './table.ts'

export interface InApp {
  /** Runs one operation of the hub's table, with the permissions of the app. Rejects with `HubError`. */
  call(appId: string, request: NamedCall): Promise<unknown>
  /**
   * Subscribes to `homey:manager:apps`, `homey:app:<id>` and others; returns a function that ends it. @throws HubError
   * 403, 404
   */
  subscribe(appId: string, uri: string, listener: Listener): () => void
  /** Sends an event of the app's own item, `homey:app:<appId>`. */
  emit(appId: string, event: string, payload: unknown): void
}

export function inAppInterface(core: Core, events: Events): InApp {
  const scopesOf = (id: string): readonly string[] => {
    const record = core.apps.records.get(id)
    if (record === undefined) throw new HubError(404, 'not_found', 'App Not Found')
    const permissions: unknown = record['permissions']
    if (!Array.isArray(permissions)) return []
    return permissions.filter((permission) => typeof permission === 'string').map(normaliseScope)
  }
  return {
    async call(appId, request) {
      const scopes = scopesOf(appId)
      const { endpoint, args } = find(request, core.flavour)
      if (!endpoint.own) permits(scopes, endpoint.needs)
      return await endpoint.perform(core, args, { scopes, app: appId })
    },
    subscribe(appId, uri, listener) {
      const scopes = scopesOf(appId)
      const { needs, owner } = watchable(uri, core.apps)
      if (owner !== appId) permits(scopes, needs)
      return events.listen(uri, listener)
    },
    emit: (appId, event, payload) => core.tell(`homey:app:${appId}`, event, payload),
  }
}
