/**
 * The interface for apps of the emulated hub. The file that `main` in `app.json` names has a function as its default
 * export. The app counts as running when this function has returned or its promise is fulfilled:
 *
 * ```js
 * // @type {import('hub2mqtt/sdk').Start}
 * export default async ({ app, hub, log }) => {
 *   app.api.get('/status', () => ({ version: app.version }))
 *   await hub.manager('apps').on('app.update', ({ id }) => log(`${id} has changed`))
 * }
 * ```
 */
export type Start = (world: World) => unknown

export interface World {
  readonly app: App
  readonly hub: Hub
  /** Writes a line to the app's output, as `console.log` does. The hub keeps the last 64 KiB. */
  readonly log: (...words: unknown[]) => void
}

export interface App {
  readonly id: string
  readonly version: string
  /** The app's own web API, `/api/app/<id>/…`. */
  readonly api: Record<'get' | 'post' | 'put' | 'delete', AddRoute>
  /** Emits an event to all listeners of this app. */
  emit(event: string, payload?: unknown): void
  /** Calls `listener` when the hub stops the app, which then has two seconds to exit. */
  on(event: 'stop', listener: () => unknown): void
}

/** @param path - For example, `/lights/:light`, in which `params.light` is the matched part of the path. */
export type AddRoute = (path: string, handler: (request: ApiRequest) => unknown) => void

/**
 * The handler's return value is sent as JSON; `undefined` becomes `null`. If the handler throws, the answer has the
 * `status` (400 to 599) and the `code` of the error, or the status 500.
 */
export interface ApiRequest {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** The JSON body; `null` if there is none. */
  readonly body: unknown
}

/** The hub, within the permissions in the app's `app.json`. Refused calls reject with a `HubError`. */
export interface Hub {
  /** Returns the settings of this app, which need no permission. */
  manager(name: 'settings'): Settings
  /** Returns a manager, which has a method for each operation: `hub.manager('apps').getApp({ id })`. */
  manager(name: string): Manager
  app(id: string): OtherApp
  /** Makes the hub speak a text. The app needs the permission `hub.speech`. */
  speak(text: string): Promise<void>
}

export type Operation = (args?: Readonly<Record<string, unknown>>) => Promise<unknown>

export interface Events {
  /** Subscribes to an event. Resolves when the subscription is active. */
  on(event: string, listener: (payload: unknown) => unknown): Promise<void>
  off(event: string, listener: (payload: unknown) => unknown): void
}

export type Manager = Events & { readonly [operation: string]: Operation }

export interface Settings {
  /** Resolves to the value of a setting; `null` if the setting does not exist. */
  get(name: string): Promise<unknown>
  /** Stores any JSON value; `undefined` becomes `null`. Resolves when it is saved. Names have 1 to 200 characters. */
  set(name: string, value: unknown): Promise<void>
  unset(name: string): Promise<void>
  all(): Promise<Record<string, unknown>>
  /**
   * Calls `listener` when anything except the app itself changes a setting. `value` is `undefined` if the setting was
   * removed.
   */
  on(event: 'change', listener: (name: string, value: unknown) => unknown): void
  off(event: 'change', listener: (name: string, value: unknown) => unknown): void
}

export interface OtherApp extends Events {
  /** Sends a request to the app's own web API. */
  get(path: string, options?: { query?: Readonly<Record<string, string>> }): Promise<unknown>
  post(path: string, options?: { query?: Readonly<Record<string, string>>; body?: unknown }): Promise<unknown>
  put(path: string, options?: { query?: Readonly<Record<string, string>>; body?: unknown }): Promise<unknown>
  delete(path: string, options?: { query?: Readonly<Record<string, string>> }): Promise<unknown>
}

export interface HubError extends Error {
  /** The HTTP status, such as 403. */
  readonly status: number
  /** The error code, such as `missing_scopes`. */
  readonly code: string
}
