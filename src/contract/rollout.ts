/** A rollout: one command to an app on many hubs, in waves. What is ordered, and what is kept of it on the broker. */
import * as v from 'valibot'
import { duration, object } from './payload.ts'
import type { ROLLOUT } from './schemas.ts'

/** The commands that may be rolled out: of an app, with an empty payload. */
export const ROLLOUT_COMMANDS = ['restart', 'install'] as const
export type RolloutCommand = (typeof ROLLOUT_COMMANDS)[number]

export const ROLLOUT_STATES = ['running', 'done', 'stopped', 'cancelled'] as const
/** Why it does not go on, or did not. */
export const ROLLOUT_REASONS = ['canary_failed', 'failures', 'cancelled', 'not_allowed'] as const

/** Largest number of a batch, of canaries and of failures. */
const MAX_AT_ONCE = 100
/** It names a topic, and begins the transaction of each step. */
export const MAX_ROLLOUT_NAME = 64

const few = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_AT_ONCE)))
const pattern = v.pipe(v.string(), v.nonEmpty(), v.maxLength(256))

export const rolloutOrder = object({
  command: v.picklist(ROLLOUT_COMMANDS),
  /** Of app ids: `*` stands for any characters and `?` for one. */
  app: pattern,
  /** Of hub names. Default `*`. */
  hubs: v.optional(pattern),
  /** Steps of the first wave. Default 1. */
  canary: few,
  /** Steps of each further wave. Default 10. */
  batch: few,
  /** For how long the apps of a wave must run well. Default `30s`. */
  pause: v.optional(duration),
  /** Default 1. */
  stop_after_failures: few,
})

export type RolloutOrder = ReturnType<ReturnType<(typeof rolloutOrder)['read']>['input']>

/** One app on one hub. */
export interface RolloutStep {
  readonly hub: string
  readonly app: string
}

/** With an error code of an answer; or `crashed`, `not_running`: the hub carried it out, and the app does not run well. */
export type RolloutFailure = Omit<Rollout['failed'][number], keyof RolloutStep>

/** What the broker keeps of a rollout: all that a successor needs to continue it. */
export type Rollout = Readonly<v.InferOutput<typeof ROLLOUT>>
