/** The table of the hub's operations, and the requests that examine a hub without changing anything. */
import { isRecord, type Json } from '../../base/json.ts'
import { decodeScopes } from '../../hub/decode.ts'
import { OPERATIONS, type OperationName } from '../../hub/operations.ts'
import type { ApiPrefix } from '../../hub/proven-hub.ts'
import { isRefusal } from '../../hub/written.ts'
import { type Client, isOk, kindOf, type Observation, outcomeOf, type RequestInput, recordOf } from './observation.ts'

/** Checks an answer. Returns what is wrong with it, if anything. */
type Shape = (value: Json | undefined, id: string) => string | undefined

const SHAPES = {
  anything: () => undefined,
  nothing: (value) => (isRefusal(value) ? 'reports a failure as a success' : undefined),
  greeting: (value) => (value === false ? 'returns false, as if it were another hub' : undefined),
  object: (value) => (isRecord(value) ? undefined : `returns ${kindOf(value)}, not an object`),
  collection: (value) => (typeof value === 'object' && value !== null ? undefined : `returns ${kindOf(value)}`),
  scopes: (value) => (decodeScopes(value) === undefined ? 'has no list of scopes' : undefined),
  app: (value, id) => (isRecord(value) && value['id'] === id ? undefined : 'is not the record of the app'),
  apps(value) {
    if (!isRecord(value)) return `returns ${kindOf(value)}, not an object`
    const wrong = Object.entries(value).filter(([key, record]) => !isRecord(record) || record['id'] !== key)
    return wrong.length === 0 ? undefined : `has ${wrong.length} entries that do not match their key`
  },
} satisfies Record<string, Shape>

interface Probe {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly manager: string
  /** The path below the manager. `:id` is the app, `:name` one of its settings; `:owner` and `:log` identify a log. */
  readonly path: string
  readonly shape: Shape
}

function of(name: OperationName, shape: Shape): Probe {
  const { method, manager, path } = OPERATIONS[name]
  return { method, manager, path, shape }
}

/** Every operation, in the order of the report. */
export const PROBES = {
  ping: of('ping', SHAPES.greeting),
  getSessionMe: of('getSessionMe', SHAPES.scopes),
  getApps: of('getApps', SHAPES.apps),
  getApp: of('getApp', SHAPES.app),
  getAppUsage: { method: 'GET', manager: 'apps', path: '/app/:id/usage', shape: SHAPES.collection },
  getAppLocales: of('getAppLocales', SHAPES.object),
  getAppSettings: of('getAppSettings', SHAPES.object),
  getAppSetting: of('getAppSetting', SHAPES.anything),
  setAppSetting: of('setAppSetting', SHAPES.anything),
  unsetAppSetting: of('unsetAppSetting', SHAPES.nothing),
  updateApp: of('updateApp', SHAPES.nothing),
  garbageCollectApp: of('garbageCollectApp', SHAPES.nothing),
  restartApp: of('restartApp', SHAPES.nothing),
  disableApp: of('disableApp', SHAPES.nothing),
  enableApp: of('enableApp', SHAPES.nothing),
  getAppStd: of('getAppStd', SHAPES.anything),
  installFromAppStore: of('installFromAppStore', SHAPES.nothing),
  uninstallApp: of('uninstallApp', SHAPES.nothing),
  speak: of('speak', SHAPES.nothing),
  speakReference: { method: 'POST', manager: 'speech-output', path: '/', shape: SHAPES.nothing },
  getVoices: of('getVoices', SHAPES.collection),
  createBackup: of('createBackup', SHAPES.anything),
  getInfo: of('getInfo', SHAPES.object),
  getMemoryInfo: of('getMemoryInfo', SHAPES.object),
  getStorageInfo: of('getStorageInfo', SHAPES.object),
  getLastBackup: of('getLastBackup', SHAPES.anything),
  getUpdates: of('getUpdates', SHAPES.collection),
  getDevices: of('getDevices', SHAPES.collection),
  getFlows: of('getFlows', SHAPES.collection),
  getAdvancedFlows: of('getAdvancedFlows', SHAPES.collection),
  getLogs: of('getLogs', SHAPES.collection),
  getLogEntries: of('getLogEntries', SHAPES.collection),
} as const satisfies Record<string, Probe>
export type ProbeName = keyof typeof PROBES
export const PROBE_NAMES = Object.keys(PROBES).filter((name): name is ProbeName => Object.hasOwn(PROBES, name))

/** The reads without parameters. */
const READS = PROBE_NAMES.filter((name) => PROBES[name].method === 'GET' && !PROBES[name].path.includes(':'))

export type Extra = 'pingOther' | 'noKey' | 'unknownKey' | 'unknownApp' | 'absentMethod' | 'unsetAgain' | 'readBack'

export type AppRecord = Record<string, unknown>

export interface Reading {
  readonly pings: Readonly<Record<ApiPrefix, Observation>>
  readonly prefix: ApiPrefix
  readonly answers: Map<ProbeName | Extra, Observation>
  readonly records: readonly AppRecord[]
  readonly app: string | null
  readonly untried: Map<ProbeName | Extra, string>
  /** The reason why operations without a reason in `untried` were not tried. */
  noWrites: string
}

export const whyNot = ({ untried, noWrites }: Reading, name: ProbeName | Extra): string => untried.get(name) ?? noWrites

export function whyNoApp({ answers }: Pick<Reading, 'answers'>): string {
  const seen = answers.get('getApp')
  return seen === undefined || outcomeOf(seen) === 'absent' ? 'does not exist' : 'could not be read'
}

export function pathTo(prefix: ApiPrefix, { manager, path }: Probe, id = '', name = ''): string {
  const [first, second] = [encodeURIComponent(id), encodeURIComponent(name)]
  const filled = path.replace(':id', first).replace(':owner', first).replace(':name', second).replace(':log', second)
  return `/api/${prefix}/${manager}${filled}`
}

/** The minimum time limit for an install, which takes up to half a minute, or longer on a busy hub. */
const INSTALL_MS = 60_000

export function operate(
  client: Client,
  prefix: ApiPrefix,
  name: ProbeName,
  { app, setting, ...options }: RequestInput & { readonly app?: string; readonly setting?: string } = {},
): Promise<Observation> {
  const patienceMs = name === 'installFromAppStore' ? INSTALL_MS : 0
  return client.request(PROBES[name].method, pathTo(prefix, PROBES[name], app, setting), { patienceMs, ...options })
}

export async function greetings(client: Client): Promise<Reading['pings']> {
  const ping = (prefix: ApiPrefix) => operate(client, prefix, 'ping', { show: 'no key' })
  return { manager: await ping('manager'), managers: await ping('managers') }
}

const NO_APP = 'hub2mqtt.conformance.no-such-app'

/** Sends all read requests. @param wanted the id of the app to read; default: a running app */
export async function read(client: Client, pings: Reading['pings'], prefix: ApiPrefix, wanted?: string) {
  const answers: Reading['answers'] = new Map()
  const readOperation = async (name: ProbeName, app?: string, setting?: string) => {
    answers.set(name, await operate(client, prefix, name, { ...(app && { app }), ...(setting && { setting }) }))
  }
  const readExtra = async (name: Extra, path: string, show: 'key' | 'unknown key' | 'no key') => {
    answers.set(name, await client.request('GET', path, { show }))
  }
  answers.set('ping', pings[prefix])
  await readExtra('pingOther', `${pathTo(prefix, PROBES.ping)}?id=hub2mqtt-conformance`, 'no key')
  await readExtra('noKey', pathTo(prefix, PROBES.getApps), 'no key')
  await readExtra('unknownKey', pathTo(prefix, PROBES.getApps), 'unknown key')
  await readOperation('getSessionMe')
  await readOperation('getApps')
  const listed = answers.get('getApps')
  const records = Object.values(recordOf(listed) ?? {}).filter(isRecord)
  const app = wanted ?? idOf(records.find(({ state }) => state === 'running') ?? records[0])
  const untried: Reading['untried'] = new Map([
    ['uninstallApp', 'never done'],
    ['createBackup', 'never done'],
  ])
  for (const name of ['getApp', 'getAppUsage', 'getAppLocales', 'getAppSettings'] as const) {
    const found = answers.get('getApp')
    if (app === null) untried.set(name, isOk(listed) ? 'there is no app' : 'the apps are not listed')
    else if (found !== undefined && outcomeOf(found) === 'absent') untried.set(name, 'the app does not exist')
    else await readOperation(name, app)
  }
  const [setting] = Object.keys(recordOf(answers.get('getAppSettings')) ?? {})
  if (app !== null && setting !== undefined) await readOperation('getAppSetting', app, setting)
  else untried.set('getAppSetting', untried.get('getAppSettings') ?? 'no setting is known')
  for (const name of READS.filter((one) => !answers.has(one))) await readOperation(name)
  const log = logIn(answers.get('getLogs'))
  await (log === undefined ? untried.set('getLogEntries', 'no log is known') : readOperation('getLogEntries', ...log))
  await readExtra('unknownApp', pathTo(prefix, PROBES.getApp, NO_APP), 'key')
  await readExtra('absentMethod', `/api/${prefix}/apps/hub2mqtt-conformance`, 'key')
  return { pings, prefix, answers, records, app, untried, noWrites: 'without --writes' }
}

function logIn(seen: Observation | undefined): [owner: string, id: string] | undefined {
  const [log] = Object.values(Object(seen?.value)).filter(isRecord)
  const owner = log?.['ownerUri'] ?? log?.['uri']
  return log === undefined || typeof owner !== 'string' ? undefined : [owner, String(log['id'])]
}

function idOf(record: AppRecord | undefined): string | null {
  const id = record?.['id']
  return typeof id === 'string' && id !== '' ? id : null
}
