/** The hub's events: what clients and apps can subscribe to, and the listeners inside the hub. */
import { HubError } from '../hub-error.ts'
import type { Needs } from '../scopes.ts'
import type { HubApps } from './hub-apps.ts'
import { NOTIFICATIONS_URI } from './managers/household.ts'

export const APPS_URI = 'homey:manager:apps'

const MANAGERS: ReadonlyMap<string, Needs> = new Map([
  [APPS_URI, 'homey.app.readonly'],
  [NOTIFICATIONS_URI, 'homey.notifications.readonly'],
])

/** The permission that a subscription needs, and the app that owns the events. @throws HubError 404 */
export function watchable(uri: string, apps: HubApps): { needs: Needs; owner?: string } {
  const needs = MANAGERS.get(uri)
  if (needs !== undefined) return { needs }
  const owner = uri.match(/^homey:app:(.+)$/)?.[1]
  if (owner !== undefined && apps.records.has(owner)) return { needs: 'homey.app.control', owner }
  throw new HubError(404, 'not_found', 'Nothing to subscribe to by this name')
}

export type Listener = (event: string, payload: unknown) => void

/** Listeners inside the hub, by the URI of the sender. */
export class Events {
  readonly #listeners = new Map<string, Set<Listener>>()

  /** Returns a function that ends the subscription and may be called twice. */
  listen(uri: string, listener: Listener): () => void {
    // Wrap the listener, so that ending one subscription leaves an equal one alone.
    const own: Listener = (event, payload) => listener(event, payload)
    const listeners = this.#listeners.get(uri) ?? new Set()
    this.#listeners.set(uri, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && this.#listeners.get(uri) === listeners) this.#listeners.delete(uri)
    }
  }

  tell(uri: string, event: string, payload: unknown): void {
    for (const listener of [...(this.#listeners.get(uri) ?? [])]) listener(event, payload)
  }
}
