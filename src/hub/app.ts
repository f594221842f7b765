/** What an app is, in the words of the MQTT contract: a value of this type is published as it stands. */

export const APP_STATES = ['starting', 'running', 'stopping', 'stopped', 'crashed'] as const
export type AppState = (typeof APP_STATES)[number]

/** One app of a hub. Every key is always there; what the hub did not tell, or told with a wrong type, is `null`. */
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
  /** Per cent of one core, one decimal; `null` unless running. */
  readonly cpu_percent: number | null
  /** Whole bytes; `null` unless running. */
  readonly memory_bytes: number | null
  readonly has_settings: boolean | null
  readonly sdk: number | null
  readonly author: string | null
  readonly compatibility: string | null
}

/** What a hub said of an app: only the keys it spoke of. */
export type AppPatch = Partial<Omit<App, 'id'>>

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
 * The app after a patch: over `before` where the hub told a part, over nothing where it told all.
 * The same reference as `before` if the patch changes nothing.
 */
export function patchApp(before: App | undefined, id: string, patch: AppPatch): App {
  const after = { id, ...UNKNOWN, ...before, ...patch }
  // Usage figures of an app that does not run are leftovers of the time when it did.
  if (after.state !== null && after.state !== 'running') {
    after.cpu_percent = null
    after.memory_bytes = null
  }
  if (before !== undefined && sameApp(before, after)) return before
  return after
}

function sameApp(one: App, other: App): boolean {
  for (const key of APP_KEYS) if (one[key] !== other[key]) return false
  return true
}
