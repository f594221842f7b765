/** What the hub itself keeps beside its apps: its own settings and the notifications. */

export interface StoredNotification {
  readonly id: number
  /** The app that sent it, or `hub`. */
  readonly owner: string
  readonly text: string
  /** Epoch milliseconds. */
  readonly at: number
}

/** The owner of what belongs to no app. */
export const HUB = 'hub'

/** Each change is kept for good when the method returns, where anything is. `owner` is the id of an app, or `hub`. */
export interface HubStore {
  settings(owner: string): ReadonlyMap<string, unknown>
  setSetting(owner: string, name: string, value: unknown): void
  unsetSetting(owner: string, name: string): void
  /** Oldest first. */
  notifications(): readonly StoredNotification[]
  notify(owner: string, text: string): StoredNotification
  /** Whether there was such a notification. */
  forget(id: number): boolean
}

/** How many settings an app or the hub may have, and how large they may be. */
export const MAX_SETTINGS = 1000
export const MAX_SETTING_NAME = 200
/** As JSON. */
export const MAX_SETTING_BYTES = 256 * 1024

/** The oldest of more are forgotten. */
export const MAX_NOTIFICATIONS = 1000

/** Keeps everything in memory only. `now` returns epoch milliseconds. */
export function hubStoreInMemory(now: () => number): HubStore {
  const settings = new Map<string, Map<string, unknown>>()
  let notifications: StoredNotification[] = []
  let last = 0
  return {
    settings: (owner) => new Map(settings.get(owner)),
    setSetting: (owner, name, value) =>
      void settings.set(owner, new Map([...(settings.get(owner) ?? []), [name, value]])),
    unsetSetting: (owner, name) => void settings.get(owner)?.delete(name),
    notifications: () => notifications,
    notify(owner, text) {
      last += 1
      const made = { id: last, owner, text, at: now() }
      notifications = [...notifications, made].slice(-MAX_NOTIFICATIONS)
      return made
    },
    forget(id) {
      const before = notifications.length
      notifications = notifications.filter((one) => one.id !== id)
      return notifications.length < before
    },
  }
}
