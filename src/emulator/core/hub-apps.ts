/** The interface between the hub's core and its apps, which are simulated or processes. */
import type { AppRecord, Flavour, Patch } from '../records.ts'
import type { InApp } from './in-app.ts'

export interface AppRequest {
  readonly method: string
  /** The path below `/api/app/<id>`, with a leading slash, percent-encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: unknown
}

export interface InstallRequest {
  readonly id: string
  /** The requested channel, as spelled by the flavour; default: `stable`, or any channel if a version is given. */
  readonly channel?: string | undefined
  /** The requested version; default: the newest. */
  readonly version?: string | undefined
}

/**
 * The apps of a hub. Methods that change an app resolve when the change is stored and has begun; events report its
 * progress. They throw a `HubError` if the hub refuses the change. Callers must check that the app exists.
 */
export interface HubApps {
  readonly records: ReadonlyMap<string, AppRecord>
  settings(id: string): ReadonlyMap<string, unknown>
  setSetting(id: string, name: string, value: unknown): void | Promise<void>
  unsetSetting(id: string, name: string): void | Promise<void>
  /** Changes the fields of a record that clients may change. */
  change(id: string, patch: Patch): void | Promise<void>
  /** Installs or updates an app from the store. @throws HubError 404 if the store has no such app or version */
  install(request: InstallRequest): void | Promise<void>
  uninstall(id: string, options: { purgeSettings: boolean }): void | Promise<void>
  enable(id: string): void | Promise<void>
  disable(id: string): void | Promise<void>
  restart(id: string): void | Promise<void>
  collectGarbage(id: string): void | Promise<void>
  /** The latest standard output and error of the app; `undefined` if the app is not a process. */
  output(id: string): string | undefined
  locales(id: string): Readonly<Record<string, unknown>>
  /** Sends a request to an app's web API. @throws HubError 404 for unknown endpoints, 503 if the app is not running */
  request(id: string, request: AppRequest): Promise<unknown>
  /** Makes a running app crash on demand. The message is for simulated apps. */
  crash(id: string, message?: string): void | Promise<void>
  /** Starts the enabled apps. Called when the hub is listening, and again after a reboot. */
  start?(): void | Promise<void>
  /** Stops every app and resolves when all apps have exited. Called when the hub stops or reboots. */
  stop?(): void | Promise<void>
}

export interface AppsHost {
  readonly flavour: Flavour
  /** Sends an event from the apps manager. Called after an app's record has changed. */
  sendEvent(event: 'app.create' | 'app.update' | 'app.delete', payload: unknown): void
  /** The interface for running apps; usable only after the hub has started. */
  readonly inApp: InApp
}
