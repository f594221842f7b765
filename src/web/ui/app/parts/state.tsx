/** How an app is, as badges and switches, and why a hub or the broker is away. */

import { isCrashed } from '../../../../contract/classify.ts'
import type { EventType, GuardEventType } from '../../../../contract/events.ts'
import type { Reason } from '../../../../contract/guard.ts'
import { lasting } from '../../../../guardian/history.ts'
import type { App, AppState } from '../../../../hub/app.ts'
import { type AppCommand, actOn, refusal } from '../commands.ts'
import { formatCount, formatTime } from '../format.ts'
import { type AppEntry, furtherOf } from '../live/entries.ts'
import type { Store } from '../live/store.ts'
import { usePage } from '../session.ts'
import { defineStrings } from '../strings.ts'
import { terms } from '../terms.ts'
import { Badge, Switch, type Tone } from './controls.tsx'

const text = defineStrings('state', {
  noMessage: 'The app crashed without a message.',
  lastSeen: 'Last seen: {state}',
  update: 'Update',
  since: 'since {time}',
  sinceWhy: 'since {time}: {why}',
})

/** The properties of a component that shows an app. */
export interface AppProps {
  readonly entry: AppEntry
}

const TONES: Readonly<Record<AppState, Tone>> = {
  running: 'ok',
  starting: 'info',
  stopping: 'info',
  stopped: 'quiet',
  crashed: 'bad',
}

/** The state of an app is unknown while its hub is offline. */
export function StateBadge({ entry, store }: { readonly entry: AppEntry; readonly store: Store }) {
  const app = entry.app.value
  const isAway = store.isAway(entry.hub)
  if (!isAway && isCrashed(app)) return <CrashBadge app={app} reason={furtherOf(entry, 'guard')?.last_crash?.reason} />
  const state = isAway ? null : app.state
  if (state === null) return <Badge tone="quiet">{terms.unknown}</Badge>
  return <Badge tone={TONES[state]}>{terms.states[state]}</Badge>
}

/** The last state that the hub reported. */
export function lastState(app: App): string | undefined {
  const state = isCrashed(app) ? 'crashed' : app.state
  return state === null ? undefined : text.lastSeen({ state: terms.states[state] })
}

export const crashMessage = ({ crash_message }: App): string => crash_message ?? text.noMessage

export const eventName = (type: EventType): string => terms.events[type]

/** The guardian's unsolved problem with the app; `undefined`: none. */
export function troubleOf(entry: AppEntry, store: Store): GuardEventType | undefined {
  const guard = furtherOf(entry, 'guard')
  if (guard?.state === 'given_up') return 'gave_up'
  // A command can clear it without changing the history.
  const isBad = guard !== undefined && guard.attention.length > 0
  const { version } = entry.app.value
  if (isBad && lasting(furtherOf(entry, 'history') ?? [], 'bad_update', version) !== undefined) return 'bad_update'
  return store.failedUpdates.value.has(`${entry.hub}/${entry.id}`) ? 'update_failed' : undefined
}

/** Whether a person should look at the app: the guardian asks for it, or the app has crashed and is not restarted. */
export function needsAttention(entry: AppEntry, store: Store): boolean {
  const guard = furtherOf(entry, 'guard')
  const isLeft = guard === undefined || guard.state === 'off' || guard.state === 'snoozed'
  if (isLeft && isCrashed(entry.app.value)) return true
  return (guard?.attention.length ?? 0) > 0 || troubleOf(entry, store) !== undefined
}

/** Reasons that are less informative than the crash's message. */
const PLAIN: ReadonlySet<Reason> = new Set(['unknown', 'exception'])

interface CrashProps {
  readonly app: App
  /** If the guardian knows it. */
  readonly reason?: Reason | undefined
}

function CrashBadge({ app, reason }: CrashProps) {
  const { crash_count } = app
  return (
    <Badge tone="bad" title={crashMessage(app)}>
      {terms.states.crashed}
      {crash_count !== null && crash_count > 1 && ` ×${formatCount(crash_count)}`}
      {reason !== undefined && !PLAIN.has(reason) && `: ${terms.causes[reason]}`}
    </Badge>
  )
}

export function UpdateBadge({ app: { update_available, latest_version } }: { readonly app: App }) {
  if (update_available !== true) return null
  return <Badge tone="info">{latest_version === null ? text.update : `→ ${latest_version}`}</Badge>
}

/** How long a hub or the broker has been away, and why. */
export function whyAway(since: number | undefined, reason: string | undefined): string {
  if (since === undefined) return reason ?? ''
  const time = formatTime(since)
  return reason === undefined ? text.since({ time }) : text.sinceWhy({ time, why: reason })
}

interface CommandSwitchProps extends AppProps {
  readonly command: AppCommand
  readonly label: string
  readonly on: boolean
}

/** Switches something of an app on or off by a command. */
export function CommandSwitch({ entry, command, label, on }: CommandSwitchProps) {
  const page = usePage()
  return (
    <Switch
      on={on}
      label={label}
      busy={entry.running.value !== undefined}
      refused={refusal(page, entry.target, command)}
      act={() => void actOn(entry, command, on ? 'OFF' : 'ON')}
    />
  )
}
