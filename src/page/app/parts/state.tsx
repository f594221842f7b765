/** How an app is, as badges. */
import type { Reason } from '../../../contract/guard.ts'
import type { App, AppState } from '../../../model/app.ts'
import { formatCount } from '../format.ts'
import { S } from '../strings.ts'
import { Badge, type Tone } from './small.tsx'

const TONES: Readonly<Record<AppState, Tone>> = {
  running: 'ok',
  starting: 'info',
  stopping: 'info',
  stopped: 'quiet',
  crashed: 'bad',
}

export function StateBadge({ state }: { readonly state: AppState | null }) {
  return state === null ? <Badge tone="quiet">{S.unknown}</Badge> : <Badge tone={TONES[state]}>{S.states[state]}</Badge>
}

/** What the message of a crash says better. */
const PLAIN: ReadonlySet<Reason> = new Set(['unknown', 'exception'])

export interface CrashProps {
  readonly app: App
  /** Where the guardian knows it. */
  readonly reason?: Reason | undefined
}

export function CrashBadge({ app: { crash_message, crash_count }, reason }: CrashProps) {
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
