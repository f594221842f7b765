/** Derives the expected messages of a hub from the contract alone, without the bridge's code. */
import { isDeepStrictEqual } from 'node:util'
import type { AppRecord, EmulatedHub } from '../../src/emulator/hub.ts'
import { parse } from './answers.ts'
import { discoveryFaults } from './discovery.ts'

export const BASE = 'hub2mqtt'
export const HUB = 'home'
/** The setting that the configuration publishes. Every app of the initial population has it. */
export const PUBLISHED_SETTING = 'label'

/** The prefix of the topics of apps. The id of the app follows it. */
export const APPS = `${BASE}/${HUB}/app/`
const OPTIONAL: ReadonlySet<string> = new Set([
  ...['health', 'log-level', 'discovery'].map((name) => `${BASE}/bridge/${name}`),
  ...['summary', 'health'].map((name) => `${BASE}/${HUB}/${name}`),
])
/** Endings of the topics of an app that may or may not exist. */
const OPTIONAL_OF_APP = ['/update', '/crash', '/links']

export interface Disagreement {
  readonly ghosts: readonly string[]
  readonly missing: readonly string[]
  readonly wrong: readonly string[]
}

type Expected = Readonly<Record<string, unknown>> | string

/** Encodes all bytes except letters, digits, `.`, `_` and `-` as `%XX`. */
export function level(text: string): string {
  if (text === '') return '%'
  const hide = text === '.' || text === '..'
  return [...Buffer.from(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte)
      return !hide && /[A-Za-z0-9._-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}

/** @param topic a topic below `APPS` */
export function idOf(topic: string): string {
  const text = topic.slice(APPS.length).split('/')[0] ?? ''
  return text === '%' ? '' : decodeURIComponent(text)
}

const orNull = (value: unknown) => value ?? null

/** Returns the part of a version `1.2.3` that an update increases. */
function step(from: string, to: unknown): string | null {
  const [one, other] = [from, String(to)].map((version) => version.split('.').map(Number))
  if (one?.length !== 3 || other?.length !== 3) return null
  const raised = one.findIndex((number, place) => number !== other[place])
  if (raised < 0 || Number(other[raised]) < Number(one[raised])) return 'none'
  return ['major', 'minor', 'patch'][raised] ?? null
}

function expectedApp(record: AppRecord): Record<string, unknown> {
  const { usage, updateAvailable: update, author } = record
  const runs = record.state === 'running'
  const offered = typeof update === 'object' && update !== null
  const newest = offered && 'version' in update ? update.version : null
  return {
    id: record.id,
    name: record.name,
    version: record.version,
    enabled: record.enabled,
    state: record.state,
    crashed: record.crashed,
    crash_message: record.crashedMessage?.slice(0, 1024) ?? null,
    crash_count: orNull(record['crashedCount'] ?? record['exitCount']),
    autoupdate: record.autoupdate,
    channel: record.channel,
    origin: orNull(record['origin']),
    update_available: offered ? true : update === null ? false : update,
    latest_version: newest,
    update_severity:
      update === null || update === false ? 'none' : newest === null ? null : step(record.version, newest),
    cpu_percent: runs ? Math.round(usage.cpu * 1000) / 10 : null,
    memory_bytes: runs ? Math.round(usage.mem) : null,
    has_settings: orNull(record['settings']),
    sdk: orNull(record['sdk']),
    author: typeof author === 'object' && author !== null && 'name' in author ? author.name : null,
    compatibility: orNull(record['compatibility']),
  }
}

/** Returns the expected payload of each topic. For apps, all keys and their order count, otherwise the listed keys. */
function expected(hub: EmulatedHub, hubAddress: string): Map<string, Expected> {
  const wanted = new Map<string, Expected>([
    [`${BASE}/bridge/state`, 'online'],
    [`${BASE}/bridge/info`, { contract: 1, hubs: { [HUB]: { url_host: hubAddress } } }],
    [`${BASE}/${HUB}/state`, 'online'],
    [`${BASE}/${HUB}/info`, { id: hub.id, firmware: hub.version, apps: hub.apps.size, reason: undefined }],
  ])
  for (const [id, record] of hub.apps) {
    wanted.set(`${BASE}/${HUB}/app/${level(id)}`, expectedApp(record))
    const setting = hub.settings(id)[PUBLISHED_SETTING]
    if (setting !== undefined && isPublished(id))
      wanted.set(`${BASE}/${HUB}/app/${level(id)}/setting/${PUBLISHED_SETTING}`, JSON.stringify(setting))
  }
  return wanted
}

export const publishedApps = ['net.population.app0001', 'net.population.app0002']
const isPublished = (id: string) => publishedApps.includes(id)

/** @param foreign the topics of other programs */
export function disagreement(
  retained: ReadonlyMap<string, string>,
  hub: EmulatedHub,
  hubAddress: string,
  foreign: ReadonlySet<string> = new Set(),
): Disagreement {
  const wanted = expected(hub, hubAddress)
  const appTopics = new Set([...hub.apps.keys()].map((id) => `${APPS}${level(id)}`))
  const discovery = discoveryFaults(retained, APPS, appTopics)
  const ghosts = [...retained.keys()].filter(
    (topic) => topic.startsWith(`${BASE}/`) && !wanted.has(topic) && !foreign.has(topic) && !mayExist(topic, appTopics),
  )
  const missing = [...wanted.keys()].filter((topic) => !retained.has(topic))
  const wrong = [...wanted]
    .filter(([topic, value]) => retained.has(topic) && !matches(retained.get(topic) ?? '', value))
    .map(([topic]) => `${topic}: ${retained.get(topic)?.slice(0, 300)}`)
  return { ghosts: [...ghosts, ...discovery.ghosts], missing: [...missing, ...discovery.missing], wrong }
}

/** Returns whether a topic may or may not exist. The topics of an app are optional only if the app exists. */
function mayExist(topic: string, appTopics: ReadonlySet<string>): boolean {
  if (OPTIONAL.has(topic)) return true
  return OPTIONAL_OF_APP.some((end) => topic.endsWith(end) && appTopics.has(topic.slice(0, -end.length)))
}

export function agrees({ ghosts, missing, wrong }: Disagreement): boolean {
  return ghosts.length + missing.length + wrong.length === 0
}

function matches(text: string, wanted: Expected): boolean {
  if (typeof wanted === 'string') return text === wanted
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return false
  const isApp = 'crash_count' in wanted
  if (isApp) return isDeepStrictEqual(value, wanted) && String(Object.keys(value)) === String(Object.keys(wanted))
  return contains(value, wanted)
}

/** Compares only the keys of `wanted`. A key with the value `undefined` must be missing in `value`. */
function contains(value: unknown, wanted: unknown): boolean {
  if (typeof value !== 'object' || value === null || typeof wanted !== 'object' || wanted === null)
    return isDeepStrictEqual(value, wanted)
  const found = new Map<string, unknown>(Object.entries(value))
  return Object.entries(wanted).every(([key, part]) => contains(found.get(key), part))
}
