/**
 * The hub's operations, with the methods, paths and scopes of the hub's API. The types of calls derive from the rows.
 */
import { isRecord, type Json } from '../base/json.ts'
import type { PathInput } from '../base/text.ts'
import type { AppPatch } from './app.ts'
import {
  type Clean,
  decodeApp,
  decodeApps,
  decodeJson,
  decodePatch,
  decodeRecord,
  decodeScopes,
  decodeSettings,
} from './decode.ts'
import {
  decodeDevices,
  decodeEntries,
  decodeFlows,
  decodeInfo,
  decodeLogs,
  decodeSpace,
  decodeTime,
  decodeUpdates,
} from './decode-evidence.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
export type Body = { readonly [key: string]: Json | undefined }
type Query = { readonly [key: string]: string }

type Manager = 'apps' | 'system' | 'sessions' | 'backup' | 'speech-output' | 'devices' | 'flow' | 'insights' | 'updates'

interface Definition<I extends object> {
  /** The manager in the operation's path; default: `apps`. */
  readonly manager?: Manager
  readonly method: Method
  /** The path below `/api/<prefix>/<manager>`. `:name` stands for a parameter, which is percent-encoded. */
  readonly path: string
  /** The path on hubs with the other API version. It is tried if the hub does not know `path`. */
  readonly otherPath?: string
  /** The required permission, as in the hub's documentation; `undefined` if every API key may call the operation. */
  readonly scope?: string
  /** Set if not every hub has the operation. A 404 for an app that exists means `unsupported`. */
  readonly optional?: true
  /** Maximum size of the response in bytes; default: 5 MiB, much more than the list of a hub with 2,000 apps needs. */
  readonly maxBytes?: number
  /** Set if `decode` receives the response as text, because parsing it in one step may block the event loop. */
  readonly asText?: true
  readonly body?: (input: I) => Body
  readonly query?: (input: I) => Query
  /** Set for a write that may return the app's record. Returns the values that the record should have. */
  readonly shows?: (body: Body | Json | undefined) => AppPatch
}

type Decode<I extends object, R> = (value: Json, input: I, clean: Clean) => R | Promise<R>

/** A row of the table: `I` is the input of a call, `R` its result. */
export interface Operation<I extends object, R> extends Definition<I> {
  readonly manager: Manager
  readonly decode: Decode<I, R>
}

type Row<P extends string, I extends object> = Definition<I> & { readonly path: P; readonly otherPath?: P }

/** `B` is the input for the body or query. `decode` defaults to `decodeJson`. */
// biome-ignore lint/complexity/noBannedTypes: a row without body and query adds `{}` to the parameters.
function row<const P extends string, R, B extends object = {}>(
  definition: Row<P, PathInput<P> & B> & { readonly decode: Decode<PathInput<P> & B, R> },
): Operation<PathInput<P> & B, R>
// biome-ignore lint/complexity/noBannedTypes: a row without body and query adds `{}` to the parameters.
function row<const P extends string, B extends object = {}>(
  definition: Row<P, PathInput<P> & B>,
): Operation<PathInput<P> & B, Json>
function row(definition: Definition<object>): Operation<object, unknown> {
  return { manager: 'apps', decode: decodeJson, ...definition }
}

interface StoreInstall {
  readonly appId: string
  /** `stable`, `beta` or `alpha`; on newer hubs `live` or `test`. Default: the app's current channel. */
  readonly channel?: string | undefined
  /** The version to install; supported by newer hubs only. Default: the newest version of the channel. */
  readonly version?: string | undefined
  /** Whether a newer hub responds when the app is installed, instead of when the installation begins. */
  readonly waitForInstall?: boolean | undefined
}

const READ_APP = { method: 'GET', path: '/app/:id', scope: 'hub.app.readonly' } as const
const SPEECH = { manager: 'speech-output', optional: true } as const
/** Used for responses that are much smaller than a list of apps. */
const SMALL = { method: 'GET', optional: true, maxBytes: 512 * 1024 } as const
const SYSTEM = { ...SMALL, manager: 'system', scope: 'hub.system.readonly' } as const
/** Used for responses with all devices or flows of a home. */
const LARGE = { method: 'GET', optional: true, maxBytes: 8 * 1024 * 1024, asText: true } as const
const FLOWS = { ...LARGE, manager: 'flow', scope: 'hub.flow.readonly', decode: decodeFlows } as const

/** Used for writes that do not change the app's record. */
const nothing = () => ({})
/** Used for operations whose result differs between hubs and is not needed. */
const noResult = () => null

const ROWS = {
  getApps: row({ method: 'GET', path: '/app', scope: 'hub.app.readonly', decode: decodeApps }),
  getApp: row({ ...READ_APP, decode: decodeApp }),
  getAppRecord: row({ ...READ_APP, maxBytes: 1024 * 1024, decode: decodeRecord }),
  updateApp: row({
    method: 'PUT',
    path: '/app/:id',
    scope: 'hub.app',
    // Send only this field, because hubs ignore all other fields of a record.
    body: ({ update }: { update: { readonly autoupdate: boolean } }) => update,
    shows: (body) => (isRecord(body) ? decodePatch(body) : {}),
  }),
  uninstallApp: row({
    method: 'DELETE',
    path: '/app/:id',
    scope: 'hub.app',
    // The hub's parameter is a string, and a hub might interpret any string, even `false`, as yes.
    query: ({ purgeSettings }: { purgeSettings?: boolean | undefined }): { [key: string]: string } =>
      purgeSettings ? { purgeSettings: 'true' } : {},
    shows: nothing,
  }),
  getAppStd: row({
    method: 'POST',
    path: '/app/:id/crashlog',
    scope: 'hub.app.readonly',
    // The message is optional in the API reference. Newer hubs require it, but accept an empty message.
    body: ({ message = '' }: { message?: string | undefined }) => ({ message }),
  }),
  getAppSettings: row({ method: 'GET', path: '/app/:id/setting', scope: 'hub.app.control', decode: decodeSettings }),
  getAppSetting: row({ method: 'GET', path: '/app/:id/setting/:name', scope: 'hub.app.control' }),
  setAppSetting: row({
    method: 'PUT',
    path: '/app/:id/setting/:name',
    scope: 'hub.app.control',
    body: ({ value }: { value: Json }) => ({ value }),
  }),
  unsetAppSetting: row({ method: 'DELETE', path: '/app/:id/setting/:name', scope: 'hub.app.control', shows: nothing }),
  restartApp: row({ method: 'POST', path: '/app/:id/restart', scope: 'hub.app', shows: nothing }),
  garbageCollectApp: row({ method: 'POST', path: '/app/:id/gc', scope: 'hub.app', optional: true, shows: nothing }),
  enableApp: row({ method: 'PUT', path: '/app/:id/enable', scope: 'hub.app', shows: () => ({ enabled: true }) }),
  disableApp: row({ method: 'PUT', path: '/app/:id/disable', scope: 'hub.app', shows: () => ({ enabled: false }) }),
  getAppLocales: row({ method: 'GET', path: '/app/:id/locale', scope: 'hub.app.readonly' }),
  installFromAppStore: row({
    method: 'POST',
    path: '/store',
    scope: 'hub.app',
    body: ({ appId: id, channel, version, waitForInstall }: StoreInstall) => ({ id, channel, version, waitForInstall }),
    shows: nothing,
  }),
  ping: row({ manager: 'system', method: 'GET', path: '/ping', decode: noResult }),
  getSessionMe: row({ manager: 'sessions', method: 'GET', path: '/session/me', decode: decodeScopes }),
  createBackup: row({ manager: 'backup', method: 'POST', path: '/backup', scope: 'hub.system', optional: true }),
  getVoices: row({ ...SPEECH, method: 'GET', path: '/voice/', scope: 'hub.system', decode: noResult }),
  speak: row({
    ...SPEECH,
    method: 'POST',
    path: '/say',
    otherPath: '/',
    scope: 'hub.speech',
    body: ({ text }: { text: string }) => ({ text }),
  }),
  getInfo: row({ ...SYSTEM, path: '/', decode: decodeInfo }),
  getMemoryInfo: row({ ...SYSTEM, path: '/memory', decode: decodeSpace }),
  getStorageInfo: row({ ...SYSTEM, path: '/storage', decode: decodeSpace }),
  getLastBackup: row({ ...SYSTEM, manager: 'backup', path: '/option/lastSuccessfulBackup', decode: decodeTime }),
  getUpdates: row({
    ...SMALL,
    manager: 'updates',
    path: '/update',
    scope: 'hub.updates.readonly',
    decode: decodeUpdates,
  }),
  getDevices: row({
    ...LARGE,
    manager: 'devices',
    path: '/device',
    scope: 'hub.device.readonly',
    decode: decodeDevices,
  }),
  getFlows: row({ ...FLOWS, path: '/flow' }),
  getAdvancedFlows: row({ ...FLOWS, path: '/advancedflow' }),
  getLogs: row({ ...LARGE, manager: 'insights', path: '/log', scope: 'hub.insights.readonly', decode: decodeLogs }),
  // The path does not use `:id`, which always stands for an app.
  getLogEntries: row({
    ...SMALL,
    manager: 'insights',
    path: '/log/:owner/:log/entry',
    scope: 'hub.insights.readonly',
    query: ({ resolution }: { resolution: string }) => ({ resolution }),
    decode: decodeEntries,
  }),
}

export type OperationName = keyof typeof ROWS

export type Parameters<N extends OperationName> =
  (typeof ROWS)[N] extends Operation<infer I extends object, unknown> ? I : never

export type Result<N extends OperationName> = (typeof ROWS)[N] extends Operation<never, infer R> ? R : never

export const OPERATIONS: { readonly [N in OperationName]: Operation<Parameters<N>, Result<N>> } = ROWS

export const OPERATION_NAMES = Object.keys(ROWS).filter((name): name is OperationName => Object.hasOwn(ROWS, name))
