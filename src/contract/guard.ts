/** The guardian's part of the contract: what it publishes about each app, and what its command takes. */
import type * as v from 'valibot'
import type { GONE_APPS, GUARD, GUARD_MEMORY, HISTORY } from './schemas.ts'

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
  'devices_unavailable',
  'unknown',
] as const
export type Reason = (typeof REASONS)[number]

export const GUARD_STATES = ['off', 'watching', 'waiting', 'restarting', 'given_up', 'snoozed'] as const

export const HISTORY_KINDS = ['crash', 'restart', 'gave_up', 'update', 'bad_update', 'memory_rising'] as const

/** What the guardian does about an app. */
export type GuardPayload = Readonly<v.InferOutput<typeof GUARD>>
export type Crash = NonNullable<GuardPayload['last_crash']>
export type HistoryEntry = v.InferOutput<typeof HISTORY>[number]
/** What neither the state nor the history contains. */
export type GuardMemory = Readonly<v.InferOutput<typeof GUARD_MEMORY>>
/** The newest version that the hub offers. */
export type Offer = NonNullable<GuardMemory['offered']>
/** An app that is gone, as it was. */
export type GoneApp = v.InferOutput<typeof GONE_APPS>[number]

/** Most entries that a history may have. */
export const MAX_HISTORY = 100
/** Most apps that an event or a list names: an entity's attributes have no room for more. */
export const MAX_APPS_NAMED = 50
/** Characters of a message; the app's own topic has more. */
export const MAX_GUARD_MESSAGE = 200

/** The input of `cmd/guard`. */
export interface GuardControl {
  readonly enabled?: boolean | undefined
  /** Milliseconds. */
  readonly snooze?: number | undefined
  readonly forget?: true | undefined
}
