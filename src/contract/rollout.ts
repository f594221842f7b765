/**
 * The request that starts a rollout, and its record on the broker. A rollout sends one command to many hubs, in waves.
 */
import * as v from 'valibot'
import { duration, object } from './payload.ts'
import type { ROLLOUT } from './schemas.ts'

/** The commands that can be rolled out: app commands with an empty payload. */
export const ROLLOUT_COMMANDS = ['restart', 'install'] as const
export type RolloutCommand = (typeof ROLLOUT_COMMANDS)[number]

export const ROLLOUT_STATES = ['running', 'done', 'stopped', 'cancelled'] as const
/** Why a rollout ended early. */
export const ROLLOUT_REASONS = ['canary_failed', 'failures', 'cancelled', 'not_allowed'] as const

/** Maximum of `batch`, `canary` and `stop_after_failures`. */
const MAX_AT_ONCE = 100
/** Maximum length of a rollout's name, which is a topic level, and the prefix of each step's transaction. */
export const MAX_ROLLOUT_NAME = 64

const few = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_AT_ONCE)))
const pattern = v.pipe(v.string(), v.nonEmpty(), v.maxLength(256))

export const rolloutOrder = object({
  command: v.picklist(ROLLOUT_COMMANDS),
  /** Pattern for app ids: `*` matches any characters, `?` a single character. */
  app: pattern,
  /** Pattern for hub names. Default: `*`. */
  hubs: v.optional(pattern),
  /** Number of steps in the first wave. Default: 1. */
  canary: few,
  /** Number of steps in each later wave. Default: 10. */
  batch: few,
  /** How long the apps of a wave must run without problems before the next wave. Default: `30s`. */
  pause: v.optional(duration),
  /** Number of failures after which the rollout stops. Default: 1. */
  stop_after_failures: few,
})

export type RolloutOrder = ReturnType<ReturnType<(typeof rolloutOrder)['read']>['input']>

export interface RolloutStep {
  readonly hub: string
  readonly app: string
}

/** An error code, or `crashed` or `not_running` if the command succeeded but the app is not running. */
export type RolloutFailure = Omit<Rollout['failed'][number], keyof RolloutStep>

/** The record of a rollout on the broker, with everything that another process needs to continue the rollout. */
export type Rollout = Readonly<v.InferOutput<typeof ROLLOUT>>
