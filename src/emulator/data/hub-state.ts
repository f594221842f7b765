/** What an emulated hub remembers, as the rest of it sees that. Every write is durable when it returns. */
import type { HubStore } from '../core/hub-store.ts'

/** An app as it outlives the hub; the record that clients see is made of it and of its manifest. */
export interface StoredApp {
  readonly id: string
  /** Absolute path of its present code. */
  readonly folder: string
  readonly version: string
  readonly enabled: boolean
  readonly autoupdate: boolean
  readonly channel: string
  readonly origin: string
  readonly crashed: boolean
  readonly crashedMessage: string | null
  readonly crashedCount: number
  readonly exitCode: number | null
  readonly exitSignal: string | null
}

/** @see HubStore for settings and notifications; @throws HubError 400, 413 for what is no JSON, too large or too many */
export interface HubState extends HubStore {
  readonly hubId: string
  /** Until `populate`: this hub has never had its first apps. */
  readonly isNew: boolean
  /** The apps of the first start, and that it has been, in one write. */
  populate(apps: readonly StoredApp[]): void
  /** In the order in which they were first put. */
  apps(): StoredApp[]
  app(id: string): StoredApp | undefined
  /** Adds an app, or replaces it in its place. */
  put(app: StoredApp): void
  remove(id: string, options: { readonly purgeSettings: boolean }): void
  /** Several writes as one: all of them are kept or none. */
  transaction<T>(task: () => T): T
  close(): void
}
