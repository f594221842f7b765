/**
 * A rollout as a value: what comes next, and how what happens changes it. Steps are taken in their order, in waves: the
 * canaries, then batch after batch, each when the one before has ended. Every step that was taken is done, failed or
 * current, so their number says where the rollout is.
 */
import type { Rollout, RolloutFailure, RolloutStep } from '../../contract/rollout.ts'

export type RolloutEvent =
  /** The next wave begins: its steps are about to be sent. */
  | { readonly kind: 'begin' }
  /** The command was carried out. */
  | { readonly kind: 'answered'; readonly step: RolloutStep }
  /** The app runs well, and has for long enough. */
  | { readonly kind: 'done'; readonly step: RolloutStep }
  | { readonly kind: 'failed'; readonly step: RolloutStep; readonly failure: RolloutFailure }
  | { readonly kind: 'cancel' }
  /** Configuration does not allow it any more. */
  | { readonly kind: 'refuse' }

/** All steps in the order in which they are taken. */
export function stepsOf({ targets }: Pick<Rollout, 'targets'>): RolloutStep[] {
  const steps = targets.flatMap(({ app, hubs }) => hubs.map((hub) => ({ hub, app })))
  return steps.sort((one, other) => order(one.hub, other.hub) || order(one.app, other.app))
}

/** The same whatever the language of the machine is. */
function order(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** How many steps were taken. */
function taken({ done, failed, current }: Rollout): number {
  return done + failed.length + current.length
}

/** The steps of the next wave; none while one is under way, and at the end. */
export function nextWave(rollout: Rollout): RolloutStep[] {
  const { state, reason, current, canary, batch } = rollout
  if (state !== 'running' || reason !== null || current.length > 0) return []
  const from = taken(rollout)
  const size = from < canary ? Math.min(canary - from, batch) : batch
  return stepsOf(rollout).slice(from, from + size)
}

/** The rollout after an event; the same one if nothing changes. */
export function reduce(rollout: Rollout, event: RolloutEvent): Rollout {
  if (rollout.state !== 'running') return rollout
  return ended(change(rollout, event))
}

function change(rollout: Rollout, event: RolloutEvent): Rollout {
  switch (event.kind) {
    case 'begin': {
      const wave = nextWave(rollout)
      if (wave.length === 0) return rollout
      return { ...rollout, current: wave.map((step) => ({ ...step, phase: 'sent' })) }
    }
    case 'answered':
      if (!isCurrent(rollout, event.step, 'sent')) return rollout
      return {
        ...rollout,
        current: rollout.current.map((one) => (isSame(one, event.step) ? { ...one, phase: 'answered' } : one)),
      }
    case 'done':
      if (!isCurrent(rollout, event.step, 'answered')) return rollout
      return { ...without(rollout, event.step), done: rollout.done + 1 }
    case 'failed': {
      if (!isCurrent(rollout, event.step)) return rollout
      const { hub, app } = event.step
      const failed = [...rollout.failed, { hub, app, ...event.failure }]
      return { ...without(rollout, event.step), failed, reason: reasonOf(rollout, failed.length) }
    }
    case 'cancel':
      return rollout.reason === null ? { ...rollout, reason: 'cancelled' } : rollout
    case 'refuse':
      return rollout.reason === null ? { ...rollout, reason: 'not_allowed' } : rollout
  }
}

/** Whoever fails among the canaries ends it, however many failures are borne later. */
function reasonOf(before: Rollout, failures: number): Rollout['reason'] {
  if (before.reason !== null) return before.reason
  if (taken(before) <= before.canary) return 'canary_failed'
  return failures >= before.stop_after_failures ? 'failures' : null
}

function ended(rollout: Rollout): Rollout {
  if (rollout.current.length > 0) return rollout
  if (rollout.reason !== null) return { ...rollout, state: rollout.reason === 'cancelled' ? 'cancelled' : 'stopped' }
  return taken(rollout) === rollout.total ? { ...rollout, state: 'done' } : rollout
}

function without(rollout: Rollout, step: RolloutStep): Rollout {
  return { ...rollout, current: rollout.current.filter((one) => !isSame(one, step)) }
}

function isCurrent({ current }: Rollout, step: RolloutStep, phase?: 'sent' | 'answered'): boolean {
  return current.some((one) => isSame(one, step) && (phase === undefined || one.phase === phase))
}

export function isSame(one: RolloutStep, other: RolloutStep): boolean {
  return one.hub === other.hub && one.app === other.app
}
