/**
 * What an app is, in the words of the MQTT contract: a value of this type is published as it stands. And what the words
 * of a hub change of it: pure functions, which neither keep nor publish anything.
 */
import { type Severity, severityOf } from '../base/versions.ts'

export const APP_STATES = ['starting', 'running', 'stopping', 'stopped', 'crashed'] as const
export type AppState = (typeof APP_STATES)[number]

/** One app of a hub. Every key is always present; what the hub did not send, or sent with a wrong type, is `null`. */
export interface App {
  readonly id: string
  readonly name: string | null
  readonly version: string | null
  readonly enabled: boolean | null
  readonly state: AppState | null
  readonly crashed: boolean | null
  /** At most 1,024 characters. */
  readonly crash_message: string | null
  readonly crash_count: number | null
  readonly autoupdate: boolean | null
  readonly channel: string | null
  readonly origin: string | null
  readonly update_available: boolean | null
  /** The version an update would bring; newer hubs say only that there is one, then this is `null`. */
  readonly latest_version: string | null
  /** How large a step the update is; `null` if that is not known. */
  readonly update_severity: Severity | null
  /** Per cent of one core, one decimal; `null` unless running. */
  readonly cpu_percent: number | null
  /** Whole bytes; `null` unless running. */
  readonly memory_bytes: number | null
  readonly has_settings: boolean | null
  readonly sdk: number | null
  readonly author: string | null
  readonly compatibility: string | null
}

/** Key of how the process ended the last time, as older hubs say. It goes with the app and is no part of what is published. */
export const EXIT = Symbol('exit')
interface WithExit {
  readonly [EXIT]?: { readonly code: number | null; readonly signal: string | null } | undefined
}
export const exitOf = (app: App & WithExit) => app[EXIT] ?? { code: null, signal: null }

/** What a hub said of an app: only the keys it spoke of. */
export type AppPatch = Partial<Omit<App, 'id' | 'update_severity'>> & WithExit

const UNKNOWN: Omit<App, 'id'> = {
  name: null,
  version: null,
  enabled: null,
  state: null,
  crashed: null,
  crash_message: null,
  crash_count: null,
  autoupdate: null,
  channel: null,
  origin: null,
  update_available: null,
  latest_version: null,
  update_severity: null,
  cpu_percent: null,
  memory_bytes: null,
  has_settings: null,
  sdk: null,
  author: null,
  compatibility: null,
}

/** The keys of an app in the order in which they are published. */
export const APP_KEYS = ['id', ...Object.keys(UNKNOWN)] as readonly (keyof App)[]

/**
 * The app after a patch: over `before` if the hub sent a part of it, over nothing if it sent all.
 * The same reference as `before` if the patch changes nothing.
 */
export function patchApp(before: App | undefined, id: string, patch: AppPatch): App {
  const after = before === undefined ? { id, ...UNKNOWN, ...patch } : { ...before, ...patch }
  // Usage figures of an app that does not run are leftovers of the time when it did.
  if (after.state !== null && after.state !== 'running') {
    after.cpu_percent = null
    after.memory_bytes = null
  }
  const offersSame =
    before?.latest_version === after.latest_version &&
    before.version === after.version &&
    before.update_available === after.update_available
  if (!offersSame) after.update_severity = stepOf(after)
  if (before !== undefined && sameApp(before, after)) return before
  return after
}

function stepOf({ update_available, version, latest_version }: App): Severity | null {
  return update_available === false ? 'none' : severityOf(version, latest_version)
}

/** One key after the other, without what follows from others: a loop over the keys takes as long as all else that an event of usage needs here. */
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

/** One message of the hub's realtime channel, decoded. */
export type AppEvent =
  | { readonly type: 'create' | 'update'; readonly id: string; readonly patch: AppPatch }
  | { readonly type: 'delete'; readonly id: string }

/** A whole list as read over REST: `undefined` for an app that is there but cannot be read: what is known of it stays. */
export type AppList = ReadonlyMap<string, AppPatch | undefined>

export type Apps = ReadonlyMap<string, App>

/** One app before and after; `undefined` on the side that lacks it. Never equal on both sides. */
export interface Change {
  readonly id: string
  readonly before: App | undefined
  readonly after: App | undefined
}

/**
 * What an event changes in `apps`; `undefined` if nothing. An update of an app that is not known changes nothing: it may
 * be late news of one that is gone.
 */
export function reduceEvent(apps: Apps, event: AppEvent): Change | undefined {
  const { id } = event
  const before = apps.get(id)
  if (before === undefined && event.type === 'update') return undefined
  const after = event.type === 'delete' ? undefined : patchApp(before, id, event.patch)
  return before === after ? undefined : { id, before, after }
}

/**
 * What a fresh list changes in `apps`; empty if nothing, so that a reconnect costs no message. A list may be older than
 * an event that overtook it, so events received during the read are laid over the list before the comparison: otherwise
 * a subscriber would see the app jump back and forth.
 */
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
    else if (event.type === 'create' || wanted.has(id)) {
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

/** Keeps the reference of an app that is equal to what is known. */
function sameOr(known: App | undefined, read: App): App {
  return known === undefined ? read : patchApp(known, read.id, read)
}
