/** A rollout: one command to an app on many hubs, in waves. What is ordered, and what is kept of it on the broker. */
import * as v from 'valibot'
import { duration, object } from './payload.ts'

/** The commands that may be rolled out: of an app, with an empty payload. */
export const ROLLOUT_COMMANDS = ['restart', 'install'] as const
export type RolloutCommand = (typeof ROLLOUT_COMMANDS)[number]

export const ROLLOUT_STATES = ['running', 'done', 'stopped', 'cancelled'] as const
/** Why it does not go on, or did not. */
export const ROLLOUT_REASONS = ['canary_failed', 'failures', 'cancelled', 'not_allowed'] as const
export type RolloutReason = (typeof ROLLOUT_REASONS)[number]

/** Of batches, canaries and failures. */
export const MAX_AT_ONCE = 100
/** It names a topic, and begins the transaction of each step. */
export const MAX_ROLLOUT_NAME = 64

const few = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_AT_ONCE)))
const pattern = v.pipe(v.string(), v.nonEmpty(), v.maxLength(256))

export const rolloutOrder = object({
  command: v.picklist(ROLLOUT_COMMANDS),
  app: pattern,
  hubs: v.optional(pattern),
  canary: few,
  batch: few,
  pause: v.optional(duration),
  stop_after_failures: few,
})

export interface RolloutOrder {
  readonly command: RolloutCommand
  /** Of app ids: `*` stands for any characters and `?` for one. */
  readonly app: string
  /** Of hub names. Default `*`. */
  readonly hubs?: string | undefined
  /** Steps of the first wave. Default 1. */
  readonly canary?: number | undefined
  /** Steps of each further wave. Default 10. */
  readonly batch?: number | undefined
  /** For how long the apps of a wave must run well. Default `30s`. */
  readonly pause?: string | undefined
  /** Default 1. */
  readonly stop_after_failures?: number | undefined
}

/** One app on one hub. */
export interface RolloutStep {
  readonly hub: string
  readonly app: string
}

export interface RolloutFailure {
  /** An error code of an answer; or `crashed`, `not_running`: the hub carried it out, and the app does not run well. */
  readonly code: string
  /** For people. */
  readonly message: string
}

/** What is kept of a rollout on the broker: all that a successor needs to go on where it was. */
export interface Rollout {
  readonly transaction: string
  readonly command: RolloutCommand
  readonly app: string
  readonly hubs: string
  readonly canary: number
  readonly batch: number
  readonly pause: string
  readonly stop_after_failures: number
  readonly state: (typeof ROLLOUT_STATES)[number]
  /** While it is running: no further step begins. */
  readonly reason: RolloutReason | null
  /** ISO 8601, like `updated_at`. */
  readonly started_at: string
  readonly updated_at: string
  readonly total: number
  /** How many steps are done. */
  readonly done: number
  readonly failed: readonly (RolloutStep & RolloutFailure)[]
  /** Under way: `sent` is not answered yet, `answered` is watched until it counts as done. */
  readonly current: readonly (RolloutStep & { readonly phase: 'sent' | 'answered' })[]
  /** Every step, by app. They are taken by hub and then by app, in the order of their characters. */
  readonly targets: readonly { readonly app: string; readonly hubs: readonly string[] }[]
}
