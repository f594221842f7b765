/** The app type, whose values are published unchanged, and the pure functions that apply the hub's messages to it. */
import { type Severity, severityOf } from '../base/versions.ts'

export const APP_STATES = ['starting', 'running', 'stopping', 'stopped', 'crashed'] as const
export type AppState = (typeof APP_STATES)[number]

/** The values of an app before the hub has sent any. */
class Unknown {
  readonly name: string | null = null
  readonly version: string | null = null
  readonly enabled: boolean | null = null
  readonly state: AppState | null = null
  readonly crashed: boolean | null = null
  /** At most 1,024 characters. */
  readonly crash_message: string | null = null
  readonly crash_count: number | null = null
  readonly autoupdate: boolean | null = null
  readonly channel: string | null = null
  readonly origin: string | null = null
  readonly update_available: boolean | null = null
  /** The newest version; `null` if there is no update, or the hub does not report the update's version. */
  readonly latest_version: string | null = null
  readonly update_severity: Severity | null = null
  /** Percent of one core, with one decimal; `null` while the app is not running. */
  readonly cpu_percent: number | null = null
  /** An integer; `null` while the app is not running. */
  readonly memory_bytes: number | null = null
  readonly has_settings: boolean | null = null
  readonly sdk: number | null = null
  readonly author: string | null = null
  readonly compatibility: string | null = null
}

/** Every key is always present. Its value is `null` if the hub did not send the value, or sent a wrong type. */
export interface App extends Unknown {
  readonly id: string
}

const UNKNOWN: Omit<App, 'id'> = { ...new Unknown() }

/** How the app's process last exited, which only older hubs report. The key is a symbol, so it is not published. */
export const EXIT = Symbol('exit')
interface WithExit {
  readonly [EXIT]?: { readonly code: number | null; readonly signal: string | null } | undefined
}
export const exitOf = (app: App & WithExit) => app[EXIT] ?? { code: null, signal: null }

/** Contains only the keys that the hub sent. */
export type AppPatch = Partial<Omit<App, 'id' | 'update_severity'>> & WithExit

export const APP_KEYS = ['id', ...Object.keys(UNKNOWN)] as readonly (keyof App)[]

/** Applies a patch to `before`, or to an empty app. Returns `before` itself if nothing changes. */
export function patchApp(before: App | undefined, id: string, patch: AppPatch): App {
  const after = before === undefined ? { id, ...UNKNOWN, ...patch } : { ...before, ...patch }
  // An app that is not running has no current usage.
  if (after.state !== null && after.state !== 'running') {
    after.cpu_percent = null
    after.memory_bytes = null
  }
  const offersSame =
    before?.latest_version === after.latest_version &&
    before.version === after.version &&
    before.update_available === after.update_available
  if (!offersSame) {
    const isNone = after.update_available === false
    after.update_severity = isNone ? 'none' : severityOf(after.version, after.latest_version)
  }
  if (before !== undefined && sameApp(before, after)) return before
  return after
}

/** Compares all keys except derived keys. A loop over the keys would double the processing time of a usage event. */
function sameApp(one: App, other: App): boolean {
  return (
    one.id === other.id &&
    one.name === other.name &&
    one.version === other.version &&
    one.enabled === other.enabled &&
    one.state === other.state &&
    one.crashed === other.crashed &&
    one.crash_message === other.crash_message &&
    one.crash_count === other.crash_count &&
    one.autoupdate === other.autoupdate &&
    one.channel === other.channel &&
    one.origin === other.origin &&
    one.update_available === other.update_available &&
    one.latest_version === other.latest_version &&
    one.cpu_percent === other.cpu_percent &&
    one.memory_bytes === other.memory_bytes &&
    one.has_settings === other.has_settings &&
    one.sdk === other.sdk &&
    one.author === other.author &&
    one.compatibility === other.compatibility
  )
}

export type AppEvent =
  | { readonly type: 'create' | 'update'; readonly id: string; readonly patch: AppPatch }
  | { readonly type: 'delete'; readonly id: string }

/** A complete list of apps, read over REST. `undefined` marks an unreadable record, whose app keeps its known state. */
export type AppList = ReadonlyMap<string, AppPatch | undefined>

export type Apps = ReadonlyMap<string, App>

/** A change to one app. `before` is `undefined` for a new app, `after` for a removed app. They are never equal. */
export interface Change {
  readonly id: string
  readonly before: App | undefined
  readonly after: App | undefined
}

/** Maximum number of apps. No hub runs so many. */
export const MAX_APPS = 5_000

/** Ignores an update of an unknown app, because the event may be late, and the app may have been uninstalled. */
export function reduceEvent(apps: Apps, event: AppEvent): Change | undefined {
  const { id } = event
  const before = apps.get(id)
  if (before === undefined && (event.type === 'update' || apps.size >= MAX_APPS)) return undefined
  const after = event.type === 'delete' ? undefined : patchApp(before, id, event.patch)
  return before === after ? undefined : { id, before, after }
}

/** Applies the events to the list, which may be older, before it compares the list with the known apps. */
export function reduceList(apps: Apps, list: AppList, eventsDuringRead: readonly AppEvent[]): Change[] {
  const wanted = new Map<string, App>()
  for (const [id, patch] of list) {
    const known = apps.get(id)
    if (patch !== undefined) wanted.set(id, sameOr(known, patchApp(undefined, id, patch)))
    else if (known !== undefined) wanted.set(id, known)
  }
  for (const event of eventsDuringRead) {
    const { id } = event
    if (event.type === 'delete') wanted.delete(id)
    else if (wanted.has(id) || (event.type === 'create' && wanted.size < MAX_APPS)) {
      wanted.set(id, sameOr(apps.get(id), patchApp(wanted.get(id), id, event.patch)))
    }
  }
  const changes: Change[] = []
  for (const [id, before] of apps) if (!wanted.has(id)) changes.push({ id, before, after: undefined })
  for (const [id, after] of wanted) {
    const before = apps.get(id)
    if (before !== after) changes.push({ id, before, after })
  }
  return changes
}

function sameOr(known: App | undefined, read: App): App {
  return known === undefined ? read : patchApp(known, read.id, read)
}
