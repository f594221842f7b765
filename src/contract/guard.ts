/** The words of the guardian, which keeps apps alive: what it publishes of each app, and what it may be told. */

/** Why an app was or should be restarted. */
export const REASONS = [
  'exception',
  'cpu_limit',
  'memory_limit',
  'killed',
  'unloaded',
  'silent',
  'probe',
  'schedule',
  'unknown',
] as const
export type Reason = (typeof REASONS)[number]

export const GUARD_STATES = ['off', 'watching', 'waiting', 'restarting', 'given_up', 'snoozed'] as const
export type GuardState = (typeof GUARD_STATES)[number]

export const HISTORY_KINDS = ['crash', 'restart', 'gave_up', 'update', 'bad_update', 'memory_rising'] as const
export type HistoryKind = (typeof HISTORY_KINDS)[number]

export interface Crash {
  /** ISO 8601. */
  readonly at: string
  readonly reason: Reason
  /** The head of what the app said. */
  readonly message: string | null
  /** Of the app. */
  readonly version: string | null
}

/** What the guardian does about an app. Times are ISO 8601. */
export interface GuardPayload {
  readonly state: GuardState
  /** By the guardian, ever. */
  readonly restarts: number
  /** Those that count against the limit. */
  readonly restarts_in_window: number
  readonly next_restart_at: string | null
  readonly snoozed_until: string | null
  readonly last_crash: Crash | null
  readonly memory_trend_bytes_per_hour: number | null
  /** Why a person should look at the app; empty if nobody need. */
  readonly attention: readonly Reason[]
}

export interface HistoryEntry {
  /** ISO 8601. */
  readonly at: string
  readonly what: HistoryKind
  readonly reason: Reason | null
  /** Of the app. */
  readonly version: string | null
  /** `guard`, `command`, or `null` for the hub and whoever uses it directly. */
  readonly by: string | null
  readonly message: string | null
}

/** The newest version that the hub offers. */
export interface Offer {
  /** `null` where the hub does not name it. */
  readonly version: string | null
  readonly since: string
  /** For how long the bridge has seen it on offer. The hour may be wrong, and this is not counted by it. */
  readonly seen_seconds: number
}

/** What neither the state nor the history tells. */
export interface GuardMemory {
  /** As a command has switched it; `null`: as configuration says. */
  readonly enabled: boolean | null
  readonly offered: Offer | null
  /** The latest change of version, while crashes are counted against it. */
  readonly updated: {
    readonly at: string
    readonly from: string | null
    readonly to: string | null
    readonly crashes: number
  } | null
}

/** An app that is gone, as it was. */
export interface GoneApp {
  readonly app: string
  /** While the bridge was running. */
  readonly gone_hours: number
  /** `null` in the rest: nothing is known. */
  readonly guard: GuardPayload | null
  /** Its newest entries. */
  readonly history: readonly HistoryEntry[]
  readonly memory: GuardMemory | null
}

/** Most entries that a history may have. */
export const MAX_HISTORY = 100
/** Characters of a message; the app's own topic has more. */
export const MAX_GUARD_MESSAGE = 200

/** What `cmd/guard` asks for. */
export interface GuardWish {
  readonly enabled?: boolean | undefined
  /** Milliseconds. */
  readonly snooze?: number | undefined
  readonly forget?: true | undefined
}
