import * as v from 'valibot'

export const StoredNotification = v.object({
  id: v.number(),
  /** The app that sent the notification, or `hub`. */
  owner: v.string(),
  text: v.string(),
  /** The time of the notification, in epoch milliseconds. */
  at: v.number(),
})
export type StoredNotification = Readonly<v.InferOutput<typeof StoredNotification>>

/** The owner of data that belongs to the hub itself, not to an app. */
export const HUB = 'hub'

/** Stores data of the hub. A persistent store saves each change before it returns. `owner`: an app's id, or `hub`. */
export interface HubStore {
  settings(owner: string): ReadonlyMap<string, unknown>
  setSetting(owner: string, name: string, value: unknown): void
  unsetSetting(owner: string, name: string): void
  /** Returns the notifications, oldest first. */
  notifications(): readonly StoredNotification[]
  notify(owner: string, text: string): StoredNotification
  /** Removes a notification. Returns whether it existed. */
  forget(id: number): boolean
}

/** Maximum number of notifications. Beyond it, the oldest notifications are removed. */
export const MAX_NOTIFICATIONS = 1000

/** Creates an in-memory store. `now` returns epoch milliseconds. */
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
