import type * as v from 'valibot'
import { APP_KEYS, type App, type Change } from '../hub/app.ts'
import type { APP_EVENT, COMMAND_FAILED, GUARD_EVENT, HUB_EVENT } from './schemas.ts'

export const APP_EVENT_TYPES = [
  'installed',
  'updated',
  'removed',
  'crashed',
  'recovered',
  'enabled',
  'disabled',
  'started',
  'stopped',
  'changed',
] as const
type AppEventType = (typeof APP_EVENT_TYPES)[number]
export const EVENT_TYPES = [...APP_EVENT_TYPES, 'command_failed'] as const
export const GUARD_EVENT_TYPES = [
  'restarted',
  'retried',
  'gave_up',
  'memory_rising',
  'updated_by_guard',
  'update_failed',
  'bad_update',
] as const
export type GuardEventType = (typeof GUARD_EVENT_TYPES)[number]
/** These events are sent even while the guardian is off. */
export const HUB_EVENT_TYPES = ['storm', 'storm_over'] as const
export type EventType = (typeof EVENT_TYPES)[number] | GuardEventType | (typeof HUB_EVENT_TYPES)[number]

/** A write that was refused or failed. */
export type CommandFailedPayload = Readonly<v.InferOutput<typeof COMMAND_FAILED>>
export type GuardEventPayload = Readonly<v.InferOutput<typeof GUARD_EVENT>>
export type AppEventPayload = Readonly<v.InferOutput<typeof APP_EVENT>>
export type HubEventPayload = Readonly<v.InferOutput<typeof HUB_EVENT>>
export type EventPayload = AppEventPayload | GuardEventPayload | HubEventPayload | CommandFailedPayload

const USAGE: ReadonlySet<keyof App> = new Set(['cpu_percent', 'memory_bytes'])

/** Returns the events in causal order; empty if only usage figures have changed. @param at epoch milliseconds */
export function eventsOf({ id, before, after }: Change, at: number): AppEventPayload[] {
  const event = (event_type: AppEventType, changed: readonly string[], more = {}): AppEventPayload => ({
    event_type,
    app: id,
    changed,
    at: new Date(at).toISOString(),
    ...more,
  })
  if (before === undefined) return [event('installed', [])]
  if (after === undefined) return [event('removed', [])]
  const changed = APP_KEYS.filter((key) => before[key] !== after[key] && !USAGE.has(key))
  if (changed.length === 0) return []
  const events: AppEventPayload[] = []
  if (before.version !== null && after.version !== null && before.version !== after.version) {
    events.push(event('updated', changed, { from: before.version, to: after.version }))
  }
  if (crashedAgain(before, after)) {
    events.push(event('crashed', changed, { message: after.crash_message, count: after.crash_count }))
  }
  if (before.crashed === true && after.crashed === false) events.push(event('recovered', changed))
  if (before.enabled === false && after.enabled === true) events.push(event('enabled', changed))
  if (before.enabled === true && after.enabled === false) events.push(event('disabled', changed))
  if (before.state !== after.state && after.state === 'running') events.push(event('started', changed))
  if (before.state !== after.state && after.state === 'stopped') events.push(event('stopped', changed))
  if (events.length === 0) events.push(event('changed', changed))
  return events
}

type CrashState = Pick<App, 'crashed' | 'crash_count'>

/** Returns whether `after` shows a crash that happened after `before`. */
export function crashedAgain(before: CrashState, after: CrashState): boolean {
  if (after.crashed !== true) return false
  return before.crashed !== true || (after.crash_count ?? 0) > (before.crash_count ?? 0)
}
