import { isCrashed } from '../../../../contract/classify.ts'
import type { GuardEventType } from '../../../../contract/events.ts'
import type { GuardPayload, Reason } from '../../../../contract/guard.ts'
import { lasting } from '../../../../guardian/history.ts'
import type { App } from '../../../../hub/app.ts'
import { type AppCommand, actOn, refusal } from '../commands.ts'
import { type AppEntry, readTopic, type Store } from '../live/store.ts'
import { usePage } from '../session.ts'
import { defineStrings, formatCount, formatTime, terms } from '../terms.ts'
import { Badge, Button, type Tone } from './controls.tsx'
import { Glyph, type GlyphName } from './icons.tsx'

const text = defineStrings('state', {
  lastSeen: 'Last seen: {state}',
  update: 'Update',
  since: 'since {time}',
  sinceWhy: 'since {time}: {why}',
  guard: {
    states: {
      off: 'off',
      watching: 'watching',
      waiting: 'waiting before the next restart',
      restarting: 'restarting',
      given_up: 'given up',
      snoozed: 'snoozed',
    },
    short: {
      off: 'Off',
      watching: 'Watching',
      waiting: 'Waiting',
      restarting: 'Restarting',
      given_up: 'Given up',
      snoozed: 'Snoozed',
    },
    next: 'next try {time}',
    until: 'until {time}',
    of: 'Guardian: {state}',
  },
})

export type AppProps = { readonly entry: AppEntry }

const TONES = { running: 'ok', starting: 'info', stopping: 'info', stopped: 'quiet' } as const

/** Shows the state of an app, which is unknown while its hub is offline. */
export function StateBadge({ entry, store }: { readonly entry: AppEntry; readonly store: Store }) {
  const app = entry.app.value
  const state = store.isAway(entry.hub) ? null : isCrashed(app) ? 'crashed' : app.state
  if (state === null) return <Badge tone="quiet">{terms.unknown}</Badge>
  if (state !== 'crashed') return <Badge tone={TONES[state]}>{terms.states[state]}</Badge>
  const { crash_count } = app
  const reason = readTopic(entry, 'guard')?.last_crash?.reason
  return (
    <Badge tone="bad" title={crashMessage(app)}>
      {terms.states.crashed}
      {crash_count !== null && crash_count > 1 && ` ×${formatCount(crash_count)}`}
      {reason !== undefined && !PLAIN.has(reason) && `: ${terms.causes[reason]}`}
    </Badge>
  )
}

export function lastState(app: App): string | undefined {
  const state = isCrashed(app) ? 'crashed' : app.state
  return state === null ? undefined : text.lastSeen({ state: terms.states[state] })
}

export const crashMessage = ({ crash_message }: App): string => crash_message ?? terms.noMessage

/** Returns the problem of the app that the guardian could not solve, if any. */
export function troubleOf(entry: AppEntry, store: Store): GuardEventType | undefined {
  const guard = readTopic(entry, 'guard')
  if (guard?.state === 'given_up') return 'gave_up'
  // Check `attention` as well, because a command can clear it without changing the history.
  const isBad = guard !== undefined && guard.attention.length > 0
  const { version } = entry.app.value
  if (isBad && lasting(readTopic(entry, 'history') ?? [], 'bad_update', version) !== undefined) return 'bad_update'
  return store.failedUpdates.value.has(`${entry.hub}/${entry.id}`) ? 'update_failed' : undefined
}

/** Whether the guardian requests attention for an app, or an app without an active guardian has crashed. */
export function needsAttention(entry: AppEntry, store: Store): boolean {
  const guard = readTopic(entry, 'guard')
  const isUnguarded = guard === undefined || guard.state === 'off' || guard.state === 'snoozed'
  if (isUnguarded && isCrashed(entry.app.value)) return true
  return (guard?.attention.length ?? 0) > 0 || troubleOf(entry, store) !== undefined
}

/** Crash reasons that say less than the message of the crash. */
const PLAIN: ReadonlySet<Reason> = new Set(['unknown', 'exception'])

export function UpdateBadge({ app: { update_available, latest_version } }: { readonly app: App }) {
  if (update_available !== true) return null
  return <Badge tone="info">{latest_version === null ? text.update : `→ ${latest_version}`}</Badge>
}

/** Returns a text that says when and why a hub or the broker went offline. */
export function whyAway(since: number | undefined, reason: string | undefined): string {
  if (since === undefined) return reason ?? ''
  const time = formatTime(since)
  return reason === undefined ? text.since({ time }) : text.sinceWhy({ time, why: reason })
}

/** A switch that sends the new state as the payload of a command, or calls `act` instead if it is given. */
export function CommandSwitch(
  props: AppProps & { command: AppCommand; label: string; on: boolean; act?: () => Promise<unknown> },
) {
  const { entry, command, label, on, act = () => actOn(entry, command, on ? 'OFF' : 'ON') } = props
  const page = usePage()
  return (
    <Button
      role="switch"
      class="switch"
      aria-checked={on}
      aria-label={label}
      busy={entry.running.value !== undefined}
      refused={refusal(page, entry.target, command)}
      act={() => void act()}
    >
      <span />
    </Button>
  )
}

type GuardState = GuardPayload['state']

/** How each state of the guardian is shown. The order is the sort order, with the most urgent state first. */
const APPEARANCES: Readonly<Record<GuardState, { readonly tone: Tone; readonly glyph: GlyphName }>> = {
  given_up: { tone: 'bad', glyph: 'alert' },
  waiting: { tone: 'warn', glyph: 'clock' },
  restarting: { tone: 'info', glyph: 'restart' },
  snoozed: { tone: 'quiet', glyph: 'dark' },
  watching: { tone: 'ok', glyph: 'shield' },
  off: { tone: 'quiet', glyph: 'pause' },
}
const ORDER = Object.keys(APPEARANCES)

/** Returns the sort position of an app. Apps that the guardian does not monitor come last. */
export function guardOrder(entry: AppEntry): number {
  const state = readTopic(entry, 'guard')?.state
  return state === undefined ? ORDER.length : ORDER.indexOf(state)
}

export function GuardBadge({ state }: { readonly state: GuardState }) {
  return <Badge tone={APPEARANCES[state].tone}>{text.guard.states[state]}</Badge>
}

/** Describes when the guardian will act next, if it plans an action. */
export function nextOf(entry: AppEntry): string | undefined {
  const guard = readTopic(entry, 'guard')
  if (guard?.state === 'snoozed' && guard.snoozed_until !== null)
    return text.guard.until({ time: timeOf(guard.snoozed_until) })
  const next = guard?.next_restart_at ?? guard?.retry_at ?? null
  return next === null ? undefined : text.guard.next({ time: timeOf(next) })
}

const timeOf = (time: string) => formatTime(Date.parse(time))

function inWords(state: GuardState, entry: AppEntry): string {
  return [text.guard.states[state], nextOf(entry)].filter((part) => part !== undefined).join(', ')
}

/** Shows the guardian's state as a glyph. Its label for screen readers is also its tooltip. */
export function GuardMark({ entry }: AppProps) {
  const state = readTopic(entry, 'guard')?.state
  if (state === undefined || state === 'off') return null
  const label = text.guard.of({ state: inWords(state, entry) })
  return (
    <span class={`guard ${APPEARANCES[state].tone}`} title={label}>
      <Glyph name={APPEARANCES[state].glyph} size={16} />
      <span class="hidden">{label}</span>
    </span>
  )
}

export function GuardCell({ entry }: AppProps) {
  const state = readTopic(entry, 'guard')?.state
  if (state === undefined) return null
  const { tone, glyph } = APPEARANCES[state]
  const next = nextOf(entry)
  return (
    <>
      <span class={`guard ${tone}`} title={inWords(state, entry)}>
        <Glyph name={glyph} size={16} /> {text.guard.short[state]}
      </span>
      {next !== undefined && <small title={next}>{next}</small>}
    </>
  )
}
