/** What the guardian reads of a hub, asks of it, and makes known of its apps. */
import type { GuardedHub } from '../guardian/turn.ts'
import { asHubError, HubError } from '../hub/errors.ts'
import { isNewer } from '../hub/greeting.ts'
import type { Hub } from '../hub/hub.ts'
import type { HubState } from './hub-state.ts'

export function guardedHub(hub: Hub, state: Pick<HubState, 'sendEvent' | 'appChanged' | 'changed'>): GuardedHub {
  return {
    apps: () => hub.apps.all.values(),
    shows: (app) => hub.apps.shows(app),
    takesVersion: () => isNewer(hub.status),
    async read(app) {
      try {
        await hub.apps.readApp(app)
        return true
      } catch (error) {
        asHubError(error)
        return false
      }
    },
    async ask(app, path) {
      try {
        return await hub.askApp(app, path)
      } catch (error) {
        // Without an answer in time the app hangs; anything else is about the hub.
        return asHubError(error).code === 'no_answer' ? null : undefined
      }
    },
    async backup() {
      try {
        await hub.call('createBackup', {})
        return undefined
      } catch (error) {
        return error instanceof HubError ? error.message : 'the bridge made a mistake.'
      }
    },
    onEvent: (event) => state.sendEvent(event),
    onFacts: (app) => state.appChanged(app),
    onAttention: () => state.changed(),
  }
}
