/** Everything that the hub can be asked: sections, their items, the items' endpoints. */
import * as v from 'valibot'
import { HubError } from '../hub-error.ts'
import type { Flavour } from '../records.ts'
import { type Core, described, type Endpoint, endpoint, type Item, METHODS, optional } from './endpoint.ts'
import { APPS } from './managers/apps.ts'
import { NOTIFICATIONS, SETTINGS, SPEECH_OUTPUT } from './managers/household.ts'
import { BACKUP, SESSIONS, SYSTEM } from './managers/system.ts'

/** The section `manager`: `/api/manager/<item>…` and `homey:manager:<item>`. */
export const MANAGERS = {
  apps: APPS,
  system: SYSTEM,
  sessions: SESSIONS,
  'speech-output': SPEECH_OUTPUT,
  notifications: NOTIFICATIONS,
  settings: SETTINGS,
  backup: BACKUP,
} as const satisfies Record<string, Item>

/** The section `app`: what an app's own web API is asked, `/api/app/<id>…`. Its item is the app, its path the app's own. */
const requestApp = endpoint({
  doc: "Asks the app's own web API.",
  method: 'GET',
  path: '/:path',
  needs: 'homey.app.control',
  input: v.object({
    id: described(v.string(), 'The id of the app.'),
    method: described(v.picklist(METHODS), 'As the app has it.'),
    path: described(v.pipe(v.string(), v.startsWith('/')), 'Below the app, percent-encoded.'),
    query: optional(v.record(v.string(), v.string()), 'By name.'),
    body: optional(v.unknown(), 'Any JSON value.'),
  }),
  output: v.unknown(),
  run({ apps }: Core, { id, method, path, query = {}, body }) {
    if (!apps.records.has(id)) throw new HubError(404, 'not_found', 'App Not Found')
    return apps.request(id, { method, path, query: new Map(Object.entries(query)), body })
  },
})

/** An endpoint with where it stands. */
export interface Entry {
  readonly name: OperationName
  readonly item: string
  readonly endpoint: Endpoint
}

type Managers = typeof MANAGERS
export type ManagerId = keyof Managers
/** Of every endpoint; no two items have the same. */
export type OperationName = { [I in ManagerId]: keyof Managers[I]['endpoints'] }[ManagerId] | 'requestApp'

const entriesOf = <N extends string>(record: Readonly<Record<N, Endpoint>>, item: string) => {
  const names: readonly string[] = Object.keys(record)
  const own = (name: string): name is N => names.includes(name)
  return names.filter(own).map((name) => ({ name, item, endpoint: record[name] }))
}

/** Those of all managers, in the order of the documents. */
export const ENTRIES: readonly Entry[] = [
  ...entriesOf(APPS.endpoints, 'apps'),
  ...entriesOf(SYSTEM.endpoints, 'system'),
  ...entriesOf(SESSIONS.endpoints, 'sessions'),
  ...entriesOf(SPEECH_OUTPUT.endpoints, 'speech-output'),
  ...entriesOf(NOTIFICATIONS.endpoints, 'notifications'),
  ...entriesOf(SETTINGS.endpoints, 'settings'),
  ...entriesOf(BACKUP.endpoints, 'backup'),
]

export const APP_SECTION: Entry = { name: 'requestApp', item: '', endpoint: requestApp }

const serves = ({ only }: Endpoint, flavour: Flavour) => only?.includes(flavour) ?? true

/** The endpoints that hubs of a kind have. */
export const entriesFor = (flavour: Flavour) => ENTRIES.filter(({ endpoint: one }) => serves(one, flavour))

/** What a hub says that has no such method or path. Older ones call it an error of theirs. */
export function noSuchMethod(flavour: Flavour): HubError {
  if (flavour === 'older') return new HubError(500, 'missing_api_method', 'Missing API Method')
  return new HubError(404, 'not_found', 'Not Found')
}

/** A call by names: over the realtime channel, or by an app from inside. */
export interface NamedCall {
  readonly section: string
  readonly item: string
  readonly operation: string
  readonly args: Readonly<Record<string, unknown>>
}

/** What a call by names means. In the section `app` the operation is the method. @throws HubError where there is none */
export function find({ section, item, operation, args }: NamedCall, flavour: Flavour): Entry & Pick<NamedCall, 'args'> {
  if (section === 'app') return { ...APP_SECTION, args: { ...args, id: item, method: operation.toUpperCase() } }
  const entry = ENTRIES.find((one) => one.item === item && one.name === operation)
  if (section !== 'manager' || entry === undefined || !serves(entry.endpoint, flavour)) throw noSuchMethod(flavour)
  return { ...entry, args }
}
