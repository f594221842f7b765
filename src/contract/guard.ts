import type * as v from 'valibot'
import type { GONE_APPS, GUARD, GUARD_MEMORY, HISTORY } from './schemas.ts'

/** Two start times of a hub that differ by less than this count as the same start, because clocks are inexact. */
export const SAME_BOOT_MS = 20_000

/** Why an app was restarted or needs a restart. */
export const REASONS = [
  'exception',
  'cpu_limit',
  'memory_limit',
  'killed',
  'unloaded',
  'silent',
  'probe',
  'schedule',
  'devices_unavailable',
  'unknown',
] as const
export type Reason = (typeof REASONS)[number]

export const GUARD_STATES = ['off', 'watching', 'waiting', 'restarting', 'given_up', 'snoozed'] as const

export const HISTORY_KINDS = ['crash', 'restart', 'gave_up', 'update', 'bad_update', 'memory_rising'] as const

export type GuardPayload = Readonly<v.InferOutput<typeof GUARD>>
export type Crash = NonNullable<GuardPayload['last_crash']>
export type HistoryEntry = v.InferOutput<typeof HISTORY>[number]
/** The guardian's data about an app, except its state and history. */
export type GuardMemory = Readonly<v.InferOutput<typeof GUARD_MEMORY>>
/** The newest version that the hub offers, and how long the bridge has seen this offer. */
export type Offer = NonNullable<GuardMemory['offered']>
export type GoneApp = v.InferOutput<typeof GONE_APPS>[number]

export const MAX_HISTORY = 100
/** Maximum number of apps in an event or list, so that they fit into an entity's attributes. */
export const MAX_APPS_NAMED = 50
/** Maximum length of a message in the guardian's payloads. The app's own topic contains the whole message. */
export const MAX_GUARD_MESSAGE = 200

/** The input of `cmd/guard`. */
export interface GuardControl {
  readonly enabled?: boolean | undefined
  /** The duration of the snooze, in milliseconds. */
  readonly snooze?: number | undefined
  readonly forget?: true | undefined
}
