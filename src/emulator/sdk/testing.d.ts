import type { Start } from './sdk.d.ts'

/**
 * Starts an app in a test, without a hub and in the process of the test. Resolves when the app is running; rejects with
 * any error that the app throws before that:
 *
 * ```js
 * const app = await startApp(start, { settings: { greeting: 'Hello' } })
 * assert.deepEqual(await app.get('/greeting/Ada'), { text: 'Hello, Ada!' })
 * ```
 */
export function startApp(start: Start, options?: TestOptions): Promise<TestApp>

export interface TestOptions {
  /** The app's id. Default: `com.example.app`. */
  readonly id?: string
  /** The app's version. Default: `1.0.0`. */
  readonly version?: string
  /** The app's settings: name → any JSON value. */
  readonly settings?: Readonly<Record<string, unknown>>
  /**
   * Answers from the managers' operations: `{ apps: { getApp: ({ id }) => ({ id }) } }`. To refuse a request, throw an
   * error. Other operations are refused with 404, except `speak`, which works.
   */
  readonly managers?: Readonly<Record<string, Readonly<Record<string, (args: Record<string, unknown>) => unknown>>>>
  /** Answers from other apps, by id: `{ 'com.example.lights': { get: ({ path }) => ({ path }) } }`. */
  readonly apps?: Readonly<Record<string, OtherAppAnswers>>
}

export type OtherAppAnswers = Partial<Record<'get' | 'post' | 'put' | 'delete', (request: AppRequest) => unknown>>

export interface AppRequest {
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A running app, as seen from outside. All values are copied as JSON, as they are between an app and its hub. */
export interface TestApp {
  /**
   * Sends a request to the app's web API, with the query in the path: `/lights?on=true`. If the app throws an error,
   * rejects with a `HubError` whose `cause` is this error.
   */
  get(path: string): Promise<unknown>
  post(path: string, body?: unknown): Promise<unknown>
  put(path: string, body?: unknown): Promise<unknown>
  delete(path: string): Promise<unknown>
  /** The events that the app has emitted. */
  readonly emitted: readonly (readonly [event: string, payload: unknown])[]
  /** The texts that the hub has spoken for the app. */
  readonly spoken: readonly string[]
  readonly lines: readonly string[]
  readonly settings: Readonly<Record<string, unknown>>
  /** Changes a setting, as a user of the hub would. Throws a `HubError` if the hub would refuse the change. */
  setSetting(name: string, value: unknown): void
  /** Removes a setting, as a user of the hub would. */
  unsetSetting(name: string): void
  /** Sends the app an event from a manager: `managerEvent('apps', 'app.update', { id: 'com.example.lights' })`. */
  managerEvent(name: string, event: string, payload?: unknown): void
  /** Sends the app an event from another app. */
  appEvent(id: string, event: string, payload?: unknown): void
  /** Stops the app. Resolves when its `stop` listeners have finished. */
  stop(): Promise<void>
}
