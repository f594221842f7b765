/** What the hub's core needs of its apps, whether they only pretend to run or are processes. */
import type { AppRecord, Flavour, Patch } from '../records.ts'
import type { InApp } from './in-app.ts'

/** What an app's own web API is asked. */
export interface AppRequest {
  readonly method: string
  /** Below `/api/app/<id>`, with its slash, percent-encoded. */
  readonly path: string
  readonly query: ReadonlyMap<string, string>
  readonly body: unknown
}

export interface InstallRequest {
  readonly id: string
  readonly channel?: string | undefined
  readonly version?: string | undefined
}

/**
 * Methods that write resolve when the change is on disk and the app has started to change. Later progress is sent as
 * events. They throw a `HubError` for what the hub refuses. The caller has made sure that the app is there.
 */
export interface HubApps {
  /** The records as the next answer shows them. */
  readonly records: ReadonlyMap<string, AppRecord>
  /** A copy of an app's settings. */
  settings(id: string): ReadonlyMap<string, unknown>
  setSetting(id: string, name: string, value: unknown): void | Promise<void>
  unsetSetting(id: string, name: string): void | Promise<void>
  /** Changes what a client may change of a record. */
  change(id: string, patch: Patch): void | Promise<void>
  /** Installs from the store, or updates. @throws HubError 404 where the store has no such app or version */
  install(request: InstallRequest): void | Promise<void>
  uninstall(id: string, options: { purgeSettings: boolean }): void | Promise<void>
  enable(id: string): void | Promise<void>
  disable(id: string): void | Promise<void>
  restart(id: string): void | Promise<void>
  collectGarbage(id: string): void | Promise<void>
  /** What the app has written to its standard output and error, the latest; `undefined` where it is no process. */
  output(id: string): string | undefined
  /** The texts of the app, keyed by language. */
  locales(id: string): Readonly<Record<string, unknown>>
  /** Asks an app's own web API. @throws HubError 404 where the app has no such endpoint, 503 where it does not run */
  request(id: string, request: AppRequest): Promise<unknown>
  /** Makes a running app crash: a fault on demand. The message is for simulated apps. */
  crash(id: string, message?: string): void | Promise<void>
  /** Starts the enabled apps: called when the hub listens, and again after a reboot. */
  start?(): void | Promise<void>
  /** Stops every app and resolves when none is left: called when the hub ends or reboots. */
  stop?(): void | Promise<void>
}

/** What apps are given by the hub that they live on. */
export interface AppsHost {
  readonly flavour: Flavour
  /** An event of the manager of apps. The record of an app has changed before. */
  tell(event: AppEvent, payload: unknown): void
  /** What apps may ask; to be used once the hub has started. */
  readonly inApp: InApp
}

export type AppEvent = 'app.create' | 'app.update' | 'app.delete'
