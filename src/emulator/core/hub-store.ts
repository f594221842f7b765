import * as v from 'valibot'

export const StoredNotification = v.object({
  id: v.number(),
  /** The app that sent the notification, or `hub`. */
  owner: v.string(),
  text: v.string(),
  /** Epoch milliseconds. */
  at: v.number(),
})
export type StoredNotification = Readonly<v.InferOutput<typeof StoredNotification>>

/** The owner of data that belongs to no app. */
export const HUB = 'hub'

/** A persistent store has saved each change when the method returns. `owner` is the id of an app, or `hub`. */
export interface HubStore {
  settings(owner: string): ReadonlyMap<string, unknown>
  setSetting(owner: string, name: string, value: unknown): void
  unsetSetting(owner: string, name: string): void
  /** Oldest first. */
  notifications(): readonly StoredNotification[]
  notify(owner: string, text: string): StoredNotification
  /** Returns whether the notification existed. */
  forget(id: number): boolean
}

/** Beyond this number, the oldest notifications are removed. */
export const MAX_NOTIFICATIONS = 1000

/** `now` returns epoch milliseconds. */
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
