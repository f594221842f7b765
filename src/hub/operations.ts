/**
 * What a hub can be asked, one row each. Path, scope and method come from the hub's API; parameter types come from
 * the path's text and the row's body, so a call that does not fit its row does not compile.
 */
import type { Json } from '../base/json.ts'
import { decodeApp, decodeApps, decodeJson, decodeNothing, decodeScopes, decodeSettings } from './decode.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type Body = { readonly [key: string]: Json | undefined }

interface Row<P extends string, B, R> {
  readonly manager: 'apps' | 'system' | 'sessions' | 'speech-output'
  readonly method: Method
  /** Below `/api/<prefix>/<manager>`; `:name` is a parameter, percent-encoded. */
  readonly path: P
  /** Where a hub of the other API version has the operation; tried if `path` answers 404. */
  readonly otherPath?: P
  /** Permission, written as the hub's documentation does; none for what every key may ask. */
  readonly scope?: string
  /** Not every hub has it: 404 for an app that exists means `unsupported`. */
  readonly optional?: true
  readonly body?: (input: B) => Body
  readonly query?: (input: B) => { readonly [key: string]: string }
  readonly decode: (value: unknown) => R
}

/** Names of the `:parameters` in a path. */
type PathParameter<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathParameter<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never

// biome-ignore lint/complexity/noBannedTypes: `{}` is what a row without a body adds to the parameters.
function row<const P extends string, R, B = {}>(definition: Row<P, B, R>): Row<P, B, R> {
  return definition
}

export interface AppUpdate {
  readonly autoupdate?: boolean | undefined
  /** Older hubs only: stable, beta or alpha. */
  readonly channel?: string | undefined
}

export const OPERATIONS = {
  getApps: row({ manager: 'apps', method: 'GET', path: '/app', scope: 'hub.app.readonly', decode: decodeApps }),
  getApp: row({ manager: 'apps', method: 'GET', path: '/app/:id', scope: 'hub.app.readonly', decode: decodeApp }),
  updateApp: row({
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id',
    scope: 'hub.app',
    body: ({ update }: { update: AppUpdate }) => ({ ...update }),
    decode: decodeNothing,
  }),
  uninstallApp: row({
    manager: 'apps',
    method: 'DELETE',
    path: '/app/:id',
    scope: 'hub.app',
    query: ({ purgeSettings }: { purgeSettings?: boolean | undefined }): { [key: string]: string } =>
      purgeSettings === undefined ? {} : { purgeSettings: String(purgeSettings) },
    decode: decodeNothing,
  }),
  getAppStd: row({
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/crashlog',
    scope: 'hub.app.readonly',
    // Optional in the reference, required by newer hubs, who take an empty one.
    body: ({ message = '' }: { message?: string | undefined }) => ({ message }),
    decode: decodeJson,
  }),
  getAppSettings: row({
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/setting',
    scope: 'hub.app.control',
    decode: decodeSettings,
  }),
  getAppSetting: row({
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/setting/:name',
    scope: 'hub.app.control',
    decode: decodeJson,
  }),
  setAppSetting: row({
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id/setting/:name',
    scope: 'hub.app.control',
    body: ({ value }: { value: Json }) => ({ value }),
    decode: decodeNothing,
  }),
  unsetAppSetting: row({
    manager: 'apps',
    method: 'DELETE',
    path: '/app/:id/setting/:name',
    scope: 'hub.app.control',
    decode: decodeNothing,
  }),
  restartApp: row({
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/restart',
    scope: 'hub.app',
    decode: decodeNothing,
  }),
  garbageCollectApp: row({
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/gc',
    scope: 'hub.app',
    optional: true,
    decode: decodeNothing,
  }),
  enableApp: row({ manager: 'apps', method: 'PUT', path: '/app/:id/enable', scope: 'hub.app', decode: decodeNothing }),
  disableApp: row({
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id/disable',
    scope: 'hub.app',
    decode: decodeNothing,
  }),
  getAppLocales: row({
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/locale',
    scope: 'hub.app.readonly',
    decode: decodeJson,
  }),
  installFromAppStore: row({
    manager: 'apps',
    method: 'POST',
    path: '/store',
    scope: 'hub.app',
    body: ({ appId, channel }: { appId: string; channel?: string | undefined }) => ({ id: appId, channel }),
    decode: decodeNothing,
  }),
  ping: row({ manager: 'system', method: 'GET', path: '/ping', decode: decodeNothing }),
  getSessionMe: row({ manager: 'sessions', method: 'GET', path: '/session/me', decode: decodeScopes }),
  getVoices: row({
    manager: 'speech-output',
    method: 'GET',
    path: '/voice/',
    scope: 'hub.system',
    optional: true,
    decode: decodeNothing,
  }),
  speak: row({
    manager: 'speech-output',
    method: 'POST',
    path: '/say',
    otherPath: '/',
    scope: 'hub.speech',
    optional: true,
    body: ({ text }: { text: string }) => ({ text }),
    decode: decodeNothing,
  }),
}

export type OperationName = keyof typeof OPERATIONS
type RowOf<N extends OperationName> = (typeof OPERATIONS)[N]

/** What `call(name, …)` must be given. */
export type Parameters<N extends OperationName> =
  RowOf<N> extends Row<infer P, infer B, unknown> ? { readonly [K in PathParameter<P>]: string } & B : never

/** What `call(name, …)` resolves to. */
export type Result<N extends OperationName> =
  RowOf<N> extends Row<string, never, infer R> ? R : ReturnType<RowOf<N>['decode']>
