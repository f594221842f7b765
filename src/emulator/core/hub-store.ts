/** What the hub itself keeps beside its apps: its own settings and the notifications. */

/** A line of the hub's timeline, as clients get it. */
export interface Notification {
  readonly id: string
  /** Who it is of: `homey:app:<id>`, or `homey:manager:notifications` where a client made it. */
  readonly ownerUri: string
  readonly excerpt: string
  /** ISO 8601. */
  readonly dateCreated: string
}

/** Each change is kept for good when the method returns, where anything is. */
export interface HubStore {
  settings(): ReadonlyMap<string, unknown>
  setSetting(name: string, value: unknown): void
  unsetSetting(name: string): void
  /** By id, oldest first. */
  notifications(): ReadonlyMap<string, Notification>
  addNotification(notification: Notification): void
  removeNotification(id: string): void
}

const MAX_NOTIFICATIONS = 1000

/** Forgets everything with the process. */
export function hubStoreInMemory(): HubStore {
  const settings = new Map<string, unknown>()
  const notifications = new Map<string, Notification>()
  return {
    settings: () => settings,
    setSetting: (name, value) => void settings.set(name, value),
    unsetSetting: (name) => void settings.delete(name),
    notifications: () => notifications,
    addNotification(notification) {
      notifications.set(notification.id, notification)
      const [oldest] = notifications.keys()
      if (notifications.size > MAX_NOTIFICATIONS && oldest !== undefined) notifications.delete(oldest)
    },
    removeNotification: (id) => void notifications.delete(id),
  }
}
