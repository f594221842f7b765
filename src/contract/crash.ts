/** The evidence of a crash: at most 16 KiB of data about the crash and the time before it. */
import * as v from 'valibot'

import { GUARD_STATES, REASONS } from './guard.ts'

const text = v.pipe(v.string(), v.maxLength(256))
export const amount = v.number()
export const count = v.pipe(amount, v.integer(), v.minValue(0))
const time = v.pipe(v.string(), v.isoTimestamp())
export const about = <S extends v.GenericSchema>(schema: S, doc: string) => v.pipe(schema, v.description(doc))
export const frozen = <E extends v.ObjectEntries>(entries: E) => v.pipe(v.strictObject(entries), v.readonly())
const list = <S extends v.GenericSchema>(schema: S, max: number) =>
  v.pipe(v.array(schema), v.maxLength(max), v.readonly())

const figure = v.nullable(amount)

/** The health of a hub. Unknown values are `null`. */
export const HUB_HEALTH = frozen({
  memory_total_bytes: figure,
  memory_free_bytes: figure,
  load_1m: figure,
  load_5m: figure,
  load_15m: figure,
  cpus: figure,
  temperature_celsius: figure,
  storage_total_bytes: figure,
  storage_free_bytes: figure,
  apps_memory_bytes: about(figure, 'Sum over all apps.'),
  undervoltage: about(v.nullable(v.boolean()), 'Whether the power supply is too weak.'),
  throttled: about(v.nullable(v.boolean()), 'Whether the hub runs slower to protect itself.'),
  uptime_seconds: about(figure, 'A change of this value alone is not published.'),
  booted_at: about(v.nullable(time), 'Stays the same until the hub restarts.'),
  last_backup_at: v.nullable(time),
  firmware_update: about(v.nullable(v.string()), 'The available firmware version.'),
})
export type HubHealth = v.InferOutput<typeof HUB_HEALTH>

export const MAX_CRASH_BYTES = 16 * 1024
export const MAX_CRASH_SAMPLES = 120
/** Maximum number of prior events that the bridge keeps for a hub. */
export const MAX_BEFORE = 100
export const MAX_OTHERS = 50
const MAX_STACK_LINES = 10

/** The app events that are recorded. */
export const NOTED = ['installed', 'updated', 'removed', 'crashed'] as const

const priorEvent = frozen({
  at: time,
  what: v.picklist([...NOTED, 'command', 'setting', 'firmware_updated', 'hub_restarted']),
  app: about(v.nullable(text), '`null` for the hub as a whole.'),
  from: about(v.nullable(text), 'For a version change: the previous version.'),
  to: about(v.nullable(text), 'The new version, the command, or the name of the setting.'),
  by: about(v.nullable(text), 'For a command that did not arrive over MQTT: its sender, such as `guard`.'),
})
export type PriorEvent = v.InferOutput<typeof priorEvent>

export const CRASH = frozen({
  at: about(time, 'Time of the crash or, if the app crashed before the bridge started, when the bridge detected this.'),
  reason: v.picklist(REASONS),
  message: v.nullable(v.pipe(v.string(), v.maxLength(1024))),
  stack_head: about(v.nullable(v.pipe(v.string(), v.maxLength(1024))), 'The first ten lines of a multi-line message.'),
  version: v.nullable(text),
  firmware: v.nullable(text),
  uptime_seconds: about(v.nullable(count), 'Uptime of the hub.'),
  app_uptime_seconds: about(v.nullable(count), '`null` unless the bridge has seen the app start.'),
  exit_code: v.nullable(amount),
  exit_signal: v.nullable(text),
  samples: about(
    list(v.strictTuple([count, v.nullable(amount), v.nullable(amount)]), MAX_CRASH_SAMPLES),
    'Usage in the six hours before, oldest first: seconds before the crash, percent of one core, bytes.',
  ),
  hub: about(v.nullable(HUB_HEALTH), 'The `health` of the hub at the time of the crash.'),
  before: about(list(priorEvent, MAX_BEFORE), 'Events in the 24 hours before the crash, newest first.'),
  others_crashed: about(list(text, MAX_OTHERS), 'Apps that crashed within ten minutes of this crash.'),
  guard: about(
    v.nullable(frozen({ state: v.picklist(GUARD_STATES), restarts: count, next_restart_at: v.nullable(time) })),
    '`null` while the guardian is off.',
  ),
})
export type Crash = v.InferOutput<typeof CRASH>

/** The number of hours that `cmd/get-history` accepts. */
export const HISTORY_HOURS = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(168))

const points = v.pipe(v.array(v.pipe(v.tuple([count, amount]), v.readonly())), v.readonly())

export const USAGE_HISTORY = frozen({
  resolution_seconds: about(v.pipe(count, v.minValue(1)), 'The length of a period.'),
  cpu_percent: about(
    points,
    'The start of each period with data in seconds since 1970, and its mean in percent of one core.',
  ),
  memory_bytes: about(points, 'As `cpu_percent`, with the highest memory usage in bytes.'),
  source: v.picklist(['hub', 'bridge']),
})
export type UsageHistory = v.InferOutput<typeof USAGE_HISTORY>

/** Returns `null` for a string that is too long to be valid. A truncated string could still contain part of a key. */
export const shortOrNull = (text: string | null) => (text === null || text.length > 256 ? null : text)

/** Returns the first ten lines of a message; `null` if the message has only one line, and therefore no stack. */
export function stackHead(message: string | null): string | null {
  const lines = message?.split('\n', MAX_STACK_LINES) ?? []
  return lines.length < 2 ? null : lines.join('\n')
}

/**
 * Removes data until the evidence fits the limit: first the oldest events, then the last of the other apps, then the
 * oldest samples, and finally the stack, whose start is also in the message. Never truncates a string.
 */
export function fitted(crash: Crash): Crash {
  let excess = bytesOf(crash) - MAX_CRASH_BYTES
  const shorten = <T>(items: readonly T[]): T[] => {
    const remaining = [...items]
    while (excess > 0 && remaining.length > 0) excess -= bytesOf(remaining.pop()) + 1
    return remaining
  }
  const before = shorten(crash.before)
  const others_crashed = shorten(crash.others_crashed)
  const samples = shorten(crash.samples.toReversed()).reverse()
  return { ...crash, before, others_crashed, samples, ...(excess > 0 && { stack_head: null }) }
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

interface TimedEvent extends Pick<PriorEvent, 'what' | 'to'> {
  readonly at: number
}

/** Returns a sentence, without a full stop, about how many apps crashed together, and after which event. */
export function together(crashedAt: readonly number[], before: readonly TimedEvent[]): string | undefined {
  if (crashedAt.length < 2) return undefined
  const first = Math.min(...crashedAt)
  const span = Math.max(...crashedAt) - first
  const sentence = `${crashedAt.length} apps crashed within ${span < MINUTE_MS ? 'a minute' : minutes(span)}`
  const cause = before.find(({ what, at }) => {
    const age = first - at
    return (what === 'firmware_updated' || what === 'hub_restarted') && age >= 0 && age <= CAUSE_MS
  })
  if (cause === undefined) return sentence
  const event = cause.what === 'hub_restarted' ? 'the hub restarted' : `firmware ${cause.to ?? ''} came`
  return `${sentence}, ${minutes(first - cause.at)} after ${event}`
}

const MINUTE_MS = 60_000
/** Maximum time between an event and the crashes that it may have caused. */
const CAUSE_MS = 60 * MINUTE_MS

function minutes(ms: number): string {
  const whole = Math.max(1, Math.round(ms / MINUTE_MS))
  return whole === 1 ? '1 minute' : `${whole} minutes`
}
