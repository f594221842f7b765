/** How an app is, as badges. */
import type { GuardEventType } from '../../../../contract/events.ts'
import type { Reason } from '../../../../contract/guard.ts'
import { isCrashed } from '../../../../guardian/classify.ts'
import { lasting } from '../../../../guardian/history.ts'
import type { App, AppState } from '../../../../hub/app.ts'
import { formatCount } from '../format.ts'
import { type AppEntry, furtherOf } from '../live/entries.ts'
import type { Store } from '../live/store.ts'
import { S } from '../strings.ts'
import { Badge, type Tone } from './small.tsx'

const TONES: Readonly<Record<AppState, Tone>> = {
  running: 'ok',
  starting: 'info',
  stopping: 'info',
  stopped: 'quiet',
  crashed: 'bad',
}

export interface StateProps {
  readonly entry: AppEntry
  readonly store: Store
}

/** The state of an app is unknown while its hub is offline. */
export function StateBadge({ entry, store }: StateProps) {
  const app = entry.app.value
  if (!store.isAway(entry.hub) && isCrashed(app)) {
    return <CrashBadge app={app} reason={furtherOf(entry, 'guard')?.last_crash?.reason} />
  }
  const state = store.isAway(entry.hub) ? null : app.state
  return state === null ? <Badge tone="quiet">{S.unknown}</Badge> : <Badge tone={TONES[state]}>{S.states[state]}</Badge>
}

/** The last state that the hub reported. */
export function lastState(app: App): string | undefined {
  const state = isCrashed(app) ? 'crashed' : app.state
  return state === null ? undefined : S.apps.lastSeen(S.states[state])
}

/** What the guardian could not repair; `undefined`: there is no such problem. */
export function troubleOf(entry: AppEntry, store: Store): GuardEventType | undefined {
  const guard = furtherOf(entry, 'guard')
  if (guard?.state === 'given_up') return 'gave_up'
  // A command can clear it and leaves the history as it is.
  const isBad = guard !== undefined && guard.attention.length > 0
  const { version } = entry.app.value
  if (isBad && lasting(furtherOf(entry, 'history') ?? [], 'bad_update', version) !== undefined) return 'bad_update'
  return store.failedUpdates.value.has(`${entry.hub}/${entry.id}`) ? 'update_failed' : undefined
}

/** What the message of a crash says better. */
const PLAIN: ReadonlySet<Reason> = new Set(['unknown', 'exception'])

interface CrashProps {
  readonly app: App
  /** Where the guardian knows it. */
  readonly reason?: Reason | undefined
}

function CrashBadge({ app: { crash_message, crash_count }, reason }: CrashProps) {
  const times = crash_count !== null && crash_count > 1 ? ` ×${formatCount(crash_count)}` : ''
  return (
    <Badge tone="bad" title={crash_message ?? S.apps.noCrashMessage}>
      {S.states.crashed}
      {times}
      {reason !== undefined && !PLAIN.has(reason) && `: ${S.guard.reasons[reason]}`}
    </Badge>
  )
}

export function UpdateBadge({ app: { update_available, latest_version } }: { readonly app: App }) {
  if (update_available !== true) return null
  return <Badge tone="info">{latest_version === null ? S.apps.update : `→ ${latest_version}`}</Badge>
}
