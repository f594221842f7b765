/** Every operation of the hub: sections, their items, and the items' endpoints. */
import * as v from 'valibot'
import { HubError } from '../hub-error.ts'
import type { Flavour } from '../records.ts'
import { type Core, type Endpoint, type Endpoints, endpoint, METHODS } from './endpoint.ts'
import { APPS } from './managers/apps.ts'
import { DEVICES, FLOWS, INSIGHTS, UPDATES } from './managers/evidence.ts'
import { NOTIFICATIONS, SETTINGS, SPEECH_OUTPUT } from './managers/household.ts'
import { BACKUP, SESSIONS, SYSTEM } from './managers/system.ts'

/** The items of the section `manager`, with paths `/api/manager/<item>…` and URIs `homey:manager:<item>`. */
const MANAGERS = {
  apps: APPS,
  system: SYSTEM,
  sessions: SESSIONS,
  'speech-output': SPEECH_OUTPUT,
  notifications: NOTIFICATIONS,
  settings: SETTINGS,
  backup: BACKUP,
  devices: DEVICES,
  flow: FLOWS,
  insights: INSIGHTS,
  updates: UPDATES,
} as const satisfies Record<string, Endpoints>

/** The only endpoint of the section `app`: forwards `/api/app/<id>…` to the app's web API, whose paths the app defines. */
const requestApp = endpoint('GET /', 'homey.app.control', {
  accepts: {
    id: v.string(),
    method: v.picklist(METHODS),
    path: v.pipe(v.string(), v.startsWith('/')),
    query: v.optional(v.record(v.string(), v.string())),
    body: v.optional(v.unknown()),
  },
  run({ apps }: Core, { id, method, path, query = {}, body }) {
    if (!apps.records.has(id)) throw new HubError(404, 'not_found', 'App Not Found')
    return apps.request(id, { method, path, query, body })
  },
}).doc("Sends a request to the app's own web API.")

export type Entry = { readonly name: OperationName; readonly item: string; readonly endpoint: Endpoint }

type Managers = typeof MANAGERS
/** The name of an endpoint. No two items have endpoints of the same name. */
export type OperationName = { [I in keyof Managers]: keyof Managers[I] }[keyof Managers] | 'requestApp'

type Named = Readonly<Partial<Record<OperationName, Endpoint>>>
const names = (endpoints: Named, name: string): name is OperationName => Object.hasOwn(endpoints, name)

/** The endpoints of the managers, in the order of the documentation. */
export const ENTRIES: readonly Entry[] = Object.entries<Named>(MANAGERS).flatMap(([item, endpoints]) =>
  Object.entries(endpoints).flatMap(([name, endpoint]) => (names(endpoints, name) ? [{ name, item, endpoint }] : [])),
)

export const APP_SECTION: Entry = { name: 'requestApp', item: '', endpoint: requestApp }

const serves = ({ only }: Endpoint, flavour: Flavour) => only?.includes(flavour) ?? true

export const entriesFor = (flavour: Flavour) => ENTRIES.filter(({ endpoint: one }) => serves(one, flavour))

/** Returns the answer to an unknown method or path. Older hubs report an internal error. */
export function noSuchMethod(flavour: Flavour): HubError {
  if (flavour === 'older') return new HubError(500, 'missing_api_method', 'Missing API Method')
  return new HubError(404, 'not_found', 'Not Found')
}

/** A call by name, over the realtime channel or from a running app. */
export interface NamedCall {
  readonly section: string
  readonly item: string
  readonly operation: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Finds the endpoint of a call by name. In the section `app`, the operation is the method. @throws HubError */
export function find({ section, item, operation, args }: NamedCall, flavour: Flavour): Entry & Pick<NamedCall, 'args'> {
  if (section === 'app') return { ...APP_SECTION, args: { ...args, id: item, method: operation.toUpperCase() } }
  const entry = ENTRIES.find((one) => one.item === item && one.name === operation)
  if (section !== 'manager' || entry === undefined || !serves(entry.endpoint, flavour)) throw noSuchMethod(flavour)
  return { ...entry, args }
}
