/** The state as the hub's own managers use it. */
import type { HubStore } from '../core/hub-store.ts'
import type { HubState } from './hub-state.ts'

/** The owner of the hub's own settings; no app can have this id. */
const HUB = 'hub'

/** What the hub itself keeps beside its apps: its own settings and the notifications. */
export function keptByHub(state: HubState): HubStore {
  return {
    settings: () => state.settings(HUB),
    setSetting: (name, value) => state.setSetting(HUB, name, value),
    unsetSetting: (name) => state.unsetSetting(HUB, name),
    notifications: () => state.notifications(),
    addNotification: (notification) => state.addNotification(notification),
    removeNotification: (id) => state.removeNotification(id),
  }
}
