/**
 * The state of a rollout, which is also its record on the broker. Steps start in order, in waves: first the canaries,
 * then one batch after another. The progress is the number of started steps, which are done, failed or current.
 */
import * as v from 'valibot'
import { readJson } from '../../base/read-json.ts'
import { CommandError } from '../../contract/errors.ts'
import { durationMs } from '../../contract/payload.ts'
import { appFilter } from '../../contract/permissions.ts'
import { PUBLICATIONS } from '../../contract/publications.ts'
import {
  MAX_ROLLOUT_NAME,
  type Rollout,
  type RolloutFailure,
  type RolloutOrder,
  type RolloutStep,
} from '../../contract/rollout.ts'
import { APP, ROLLOUT } from '../../contract/schemas.ts'
import type { Topics } from '../../contract/topics.ts'

const MAX_STEPS = 2_000
/** Maximum initial size of the record. With all failures added, it stays below the default limits of brokers. */
const MAX_BYTES = 64 * 1024

/** Names that rollouts must not have. For example, a subscriber to `<base>/+/state` must not receive a rollout. */
const RESERVED: ReadonlySet<string> = new Set([
  ...Object.values(PUBLICATIONS).flatMap(({ topic }) => /^\{base\}\/\{hub\}\/([a-z-]+)$/.exec(topic)?.[1] ?? []),
  'app',
  'cmd',
  'result',
])

export interface TargetApp extends RolloutStep {
  /** Whether the app is enabled; `null` if unknown. */
  readonly enabled: boolean | null
}

/** The keys of an app's payload that rollouts use. Later versions may send more keys. */
const SEEN_APP = v.pick(v.object(APP.entries), ['state', 'crashed', 'crash_count', 'enabled'])
export type SeenApp = v.InferOutput<typeof SEEN_APP>

export const readApp = (text: string): SeenApp | undefined => readJson(SEEN_APP, text)

/** @throws CommandError */
export function checkName(transaction: string): void {
  if (transaction.length <= MAX_ROLLOUT_NAME && !RESERVED.has(transaction)) return
  throw new CommandError(
    'invalid_payload',
    `transaction: expected a name of at most ${MAX_ROLLOUT_NAME} characters, other than ${[...RESERVED].join(', ')}.`,
  )
}

/** @throws CommandError if no app or too many apps match */
export function plan(transaction: string, order: RolloutOrder, apps: Iterable<TargetApp>, now: string): Rollout {
  const wanted = withDefaults(order)
  durationMs('pause', wanted.pause)
  const isApp = appFilter([wanted.app], [])
  const isHub = appFilter([wanted.hubs], [])
  // Apps that are disabled on purpose need no restart.
  const meant = [...apps].filter(
    ({ hub, app, enabled }) => isApp(app) && isHub(hub) && (wanted.command !== 'restart' || enabled !== false),
  )
  const total = meant.length
  if (total === 0) throw new CommandError('unknown_app', 'No app on any hub matches.')
  const targets = [...Map.groupBy(meant, ({ app }) => app)].sort(([one], [other]) => compare(one, other))
  const rollout: Rollout = {
    transaction,
    ...wanted,
    ...{ state: 'running', reason: null, started_at: now, updated_at: now },
    ...{ total, done: 0, failed: [], current: [] },
    targets: targets.map(([app, on]) => ({ app, hubs: on.map(({ hub }) => hub).sort() })),
  }
  if (total > MAX_STEPS || Buffer.byteLength(JSON.stringify(rollout)) > MAX_BYTES) {
    throw new CommandError('invalid_payload', `${total} matches are too many for one rollout: narrow hubs or app.`)
  }
  return rollout
}

export function isOrderOf(rollout: Rollout, order: RolloutOrder): boolean {
  const wanted = withDefaults(order)
  const keys = ['command', 'app', 'hubs', 'canary', 'batch', 'pause', 'stop_after_failures'] as const
  return keys.every((key) => rollout[key] === wanted[key])
}

function withDefaults({ command, app, ...rest }: RolloutOrder) {
  const { hubs = '*', canary = 1, batch = 10, pause = '30s', stop_after_failures = 1 } = rest
  return { command, app, hubs, canary, batch, pause, stop_after_failures }
}

/** Reads a record from the broker; `undefined` for any other text, or if its numbers or its topic are inconsistent. */
export function readRollout(topics: Topics, topic: string, text: string): Rollout | undefined {
  const found = readJson(ROLLOUT, text)
  if (found === undefined || topics.of('rollout', found) !== topic) return undefined
  const { total, done, failed, current, targets, canary, batch } = found
  const steps = targets.reduce((sum, { hubs }) => sum + hubs.length, 0)
  const targeted = new Set(targets.flatMap(({ app, hubs }) => hubs.map((hub) => JSON.stringify([hub, app]))))
  const named = [...failed, ...current].map(({ hub, app }) => JSON.stringify([hub, app]))
  const fits =
    steps === total &&
    total > 0 &&
    total <= MAX_STEPS &&
    targeted.size === total &&
    new Set(named).size === named.length &&
    named.every((one) => targeted.has(one)) &&
    done + named.length <= total &&
    canary > 0 &&
    batch > 0 &&
    isDuration(found.pause)
  return fits ? found : undefined
}

function isDuration(text: string): boolean {
  try {
    return durationMs('pause', text) > 0
  } catch {
    return false
  }
}

export type RolloutEvent =
  /** The steps of the next wave are about to be sent. */
  | { readonly kind: 'begin' }
  /** The command succeeded. */
  | { readonly kind: 'answered'; readonly step: RolloutStep }
  /** The app has been running without problems for long enough. */
  | { readonly kind: 'done'; readonly step: RolloutStep }
  | { readonly kind: 'failed'; readonly step: RolloutStep; readonly failure: RolloutFailure }
  /** The rollout was cancelled, or the configuration no longer allows it. */
  | { readonly kind: 'end'; readonly reason: 'cancelled' | 'not_allowed' }

export function stepsOf({ targets }: Pick<Rollout, 'targets'>): RolloutStep[] {
  const steps = targets.flatMap(({ app, hubs }) => hubs.map((hub) => ({ hub, app })))
  return steps.sort((one, other) => compare(one.hub, other.hub) || compare(one.app, other.app))
}

/** Compares code units, because `localeCompare` would depend on the machine. */
const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

const started = ({ done, failed, current }: Rollout): number => done + failed.length + current.length

/** Returns the steps of the next wave; empty while a wave is running, and after the last wave. */
export function nextWave(rollout: Rollout): RolloutStep[] {
  const { state, reason, current, canary, batch } = rollout
  if (state !== 'running' || reason !== null || current.length > 0) return []
  const from = started(rollout)
  const size = from < canary ? Math.min(canary - from, batch) : batch
  return stepsOf(rollout).slice(from, from + size)
}

/** Returns the rollout after an event; the same object if nothing changes. */
export function reduce(rollout: Rollout, event: RolloutEvent): Rollout {
  if (rollout.state !== 'running') return rollout
  return ended(change(rollout, event))
}

function change(rollout: Rollout, event: RolloutEvent): Rollout {
  if (event.kind === 'begin') {
    const wave = nextWave(rollout)
    return wave.length === 0 ? rollout : { ...rollout, current: wave.map((step) => ({ ...step, phase: 'sent' })) }
  }
  if (event.kind === 'end') return rollout.reason === null ? { ...rollout, reason: event.reason } : rollout
  const { step } = event
  const phase = rollout.current.find((one) => isSame(one, step))?.phase
  const others = rollout.current.filter((one) => !isSame(one, step))
  if (event.kind === 'failed' && phase !== undefined) {
    const failed = [...rollout.failed, { hub: step.hub, app: step.app, ...event.failure }]
    return { ...rollout, current: others, failed, reason: reasonOf(rollout, failed.length) }
  }
  if (event.kind === 'answered' && phase === 'sent') {
    const current = rollout.current.map((one) => (isSame(one, step) ? { ...one, phase: 'answered' as const } : one))
    return { ...rollout, current }
  }
  if (event.kind === 'done' && phase === 'answered') return { ...rollout, current: others, done: rollout.done + 1 }
  return rollout
}

/** Returns why a rollout ends early. A failed canary ends the rollout even if failures are allowed. */
function reasonOf(before: Rollout, failures: number): Rollout['reason'] {
  if (before.reason !== null) return before.reason
  if (started(before) <= before.canary) return 'canary_failed'
  return failures >= before.stop_after_failures ? 'failures' : null
}

function ended(rollout: Rollout): Rollout {
  if (rollout.current.length > 0) return rollout
  if (rollout.reason !== null) return { ...rollout, state: rollout.reason === 'cancelled' ? 'cancelled' : 'stopped' }
  return started(rollout) === rollout.total ? { ...rollout, state: 'done' } : rollout
}

const isSame = (one: RolloutStep, other: RolloutStep): boolean => one.hub === other.hub && one.app === other.app
