/** Everything the hub can be asked, declared once: the REST routes and the calls over the realtime channel. */

import { isRecord } from '../base/json.ts'
import type { Apps } from './apps.ts'
import { HubError } from './hub-error.ts'
import { type AppRecord, type Flavour, GENERATIONS } from './records.ts'
import type { Needs } from './scopes.ts'

/** What an operation may know of, and do to, the hub it runs on. */
export interface Inside {
  readonly id: string
  readonly version: string
  readonly flavour: Flavour
  readonly apps: Apps
  speak(text: string): void
}

/** One request, whichever way it came. */
export interface Call {
  readonly params: { readonly id: string; readonly name: string }
  readonly query: ReadonlyMap<string, string>
  readonly body: unknown
  readonly scopes: readonly string[]
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
export type ManagerId = 'apps' | 'system' | 'sessions' | 'backup' | 'speech-output'

export interface Operation {
  manager: ManagerId
  method: Method
  path: string
  /** The reference's path for the same, where it differs. Older hubs answer both, a hub of the reference this alone. */
  alias?: string
  needs: Needs
  /** Without it hubs of every flavour have the operation. */
  only?: readonly Flavour[]
  /** The argument that is the whole body when the call comes over the realtime channel. */
  bodyArgument?: string
  /** What comes back becomes the answer; undefined is "nothing", which hubs word in several ways. */
  run(hub: Inside, call: Call): unknown
}

export const OPERATIONS = {
  ping: {
    manager: 'system',
    method: 'GET',
    path: '/ping',
    needs: 'nothing',
    run: (hub, { query }) => (query.get('id') ?? hub.id) === hub.id,
  },
  getSessionMe: {
    manager: 'sessions',
    method: 'GET',
    path: '/session/me',
    needs: 'key',
    only: ['older', 'newer'],
    run: (_hub, { scopes }) => ({ type: 'pat', scopes, intersectedScopes: scopes }),
  },
  getApps: {
    manager: 'apps',
    method: 'GET',
    path: '/app',
    needs: 'homey.app.readonly',
    run: (hub) => Object.fromEntries(hub.apps.records),
  },
  getApp: {
    manager: 'apps',
    method: 'GET',
    path: '/app/:id',
    needs: 'homey.app.readonly',
    run: (hub, call) => known(hub, call),
  },
  updateApp: {
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id',
    needs: 'homey.app',
    bodyArgument: 'app',
    run(hub, call) {
      const { id } = known(hub, call)
      const patch = honoured(objectBody(call), hub.flavour)
      if (Object.keys(patch).length > 0) hub.apps.change(id, patch)
      return hub.apps.records.get(id)
    },
  },
  uninstallApp: {
    manager: 'apps',
    method: 'DELETE',
    path: '/app/:id',
    needs: 'homey.app',
    run(hub, call) {
      const purgeSettings = hub.flavour === 'newer' || call.query.get('purgeSettings') === 'true'
      hub.apps.uninstall(known(hub, call).id, { purgeSettings })
    },
  },
  getAppStd: {
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/crashlog',
    needs: 'homey.app.readonly',
    run(hub, call) {
      known(hub, call)
      if (hub.flavour === 'newer') text(call, 'message')
    },
  },
  getAppSettings: {
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/setting',
    needs: 'homey.app.control',
    run: (hub, call) => Object.fromEntries(settings(hub, call)),
  },
  getAppSetting: {
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/setting/:name',
    needs: 'homey.app.control',
    run: (hub, call) => knownSetting(hub, call).get(call.params.name),
  },
  setAppSetting: {
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id/setting/:name',
    needs: 'homey.app.control',
    run(hub, call) {
      const body = objectBody(call)
      if (!Object.hasOwn(body, 'value')) throw missing('value')
      settings(hub, call).set(call.params.name, body['value'])
    },
  },
  unsetAppSetting: {
    manager: 'apps',
    method: 'DELETE',
    path: '/app/:id/setting/:name',
    needs: 'homey.app.control',
    run: (hub, call) => void knownSetting(hub, call).delete(call.params.name),
  },
  restartApp: {
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/restart',
    needs: 'homey.app',
    run: (hub, call) => hub.apps.restart(known(hub, call).id),
  },
  garbageCollectApp: {
    manager: 'apps',
    method: 'POST',
    path: '/app/:id/gc',
    needs: 'homey.app',
    only: ['older', 'reference'],
    run: (hub, call) => hub.apps.collectGarbage(known(hub, call).id),
  },
  enableApp: {
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id/enable',
    needs: 'homey.app',
    run: (hub, call) => hub.apps.enable(known(hub, call).id),
  },
  disableApp: {
    manager: 'apps',
    method: 'PUT',
    path: '/app/:id/disable',
    needs: 'homey.app',
    run: (hub, call) => hub.apps.disable(known(hub, call).id),
  },
  getAppLocales: {
    manager: 'apps',
    method: 'GET',
    path: '/app/:id/locale',
    needs: 'homey.app.readonly',
    run: (hub, call) => ({ en: { title: known(hub, call).name } }),
  },
  installFromAppStore: {
    manager: 'apps',
    method: 'POST',
    path: '/store',
    needs: 'homey.app',
    run(hub, call) {
      const id = text(call, 'id')
      const channel = channelOf(objectBody(call)['channel'], hub.flavour)
      if (!hub.apps.install(id, channel)) throw new HubError(404, 'not_found', 'The store has no such app')
    },
  },
  say: {
    manager: 'speech-output',
    method: 'POST',
    path: '/say',
    alias: '/',
    needs: 'homey.speech',
    only: ['older', 'reference'],
    run: (hub, call) => hub.speak(text(call, 'text')),
  },
  createBackup: {
    manager: 'backup',
    method: 'POST',
    path: '/backup',
    needs: 'homey.system',
    run: () => ({ id: 'backup-1' }),
  },
  getVoices: {
    manager: 'speech-output',
    method: 'GET',
    path: '/voice',
    needs: 'homey.system',
    only: ['older'],
    run: () => ({ amber: { id: 'amber', name: 'Amber', language: 'en' } }),
  },
} satisfies Record<string, Operation>

export type OperationName = keyof typeof OPERATIONS

/** The app asked for, under the id it is kept by: its record may have been told another. */
function known(hub: Inside, { params }: Call): { id: string; name: string } & AppRecord {
  const record = hub.apps.records.get(params.id)
  if (record === undefined) throw new HubError(404, 'not_found', 'App Not Found')
  return record.id === params.id ? record : { ...record, id: params.id }
}

function settings(hub: Inside, call: Call): Map<string, unknown> {
  known(hub, call)
  return hub.apps.settings(call.params.id) ?? new Map()
}

function knownSetting(hub: Inside, call: Call): Map<string, unknown> {
  const all = settings(hub, call)
  if (!all.has(call.params.name)) throw new HubError(404, 'not_found', 'Setting Not Found')
  return all
}

function objectBody({ body }: Call): Record<string, unknown> {
  if (!isRecord(body)) throw new HubError(400, 'invalid_body', 'The body has to be a JSON object')
  return body
}

function text(call: Call, name: string): string {
  const value = objectBody(call)[name]
  if (typeof value !== 'string') throw missing(name)
  return value
}

const missing = (name: string) => new HubError(400, 'missing_parameter', `Missing Parameter: ${name}`)

/** Only what this generation lets a client change; everything else in the body is ignored, as hubs do. */
function honoured(body: Record<string, unknown>, flavour: Flavour): Record<string, unknown> {
  const rules = Object.entries(GENERATIONS[flavour].honours).filter(([field]) => Object.hasOwn(body, field))
  const wrong = rules.find(([field, accepts]) => !accepts(body[field]))
  if (wrong !== undefined) throw new HubError(400, 'invalid_parameter', `Invalid Parameter: ${wrong[0]}`)
  return Object.fromEntries(rules.map(([field]) => [field, body[field]]))
}

function channelOf(value: unknown, flavour: Flavour): string | undefined {
  if (value === undefined || value === null) return undefined
  const channel = GENERATIONS[flavour].channels.find((name) => name === value)
  if (channel === undefined) throw new HubError(400, 'invalid_parameter', 'Invalid Parameter: channel')
  return channel
}
