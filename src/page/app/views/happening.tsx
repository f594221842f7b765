/** An event or an answer as a line of a list. */
import { nameOf } from '../commands.ts'
import { formatDuration } from '../format.ts'
import { type Entry, isFailure } from '../live/happenings.ts'
import type { Store } from '../live/store.ts'
import { Badge, Time } from '../parts/small.tsx'
import { hrefOf } from '../route.ts'
import { S } from '../strings.ts'

export interface HappeningProps {
  readonly entry: Entry
  /** Where to look up the app's name; without, the list is of one app. */
  readonly store?: Store
}

export function HappeningRow({ entry, store }: HappeningProps) {
  const { at } = entry
  return (
    <tr>
      <td class="c-time">
        <Time at={at} />
      </td>
      <td>
        <Badge tone={isFailure(entry) ? 'bad' : entry.kind === 'answer' ? 'ok' : 'quiet'}>{labelOf(entry)}</Badge>
      </td>
      {store !== undefined && (
        <td class="c-app">
          <Where entry={entry} store={store} />
        </td>
      )}
      <td class="c-what">{detailOf(entry)}</td>
    </tr>
  )
}

function Where({ entry: { hub, app }, store }: { readonly entry: Entry; readonly store: Store }) {
  if (hub === null) return <>{S.bridge.itself}</>
  if (app === null) return <>{hub}</>
  const known = store.app(hub, app)
  return (
    <>
      <a href={hrefOf({ at: 'app', hub, app })} title={app}>
        {known === undefined ? app : nameOf(known)}
      </a>
      {store.own.value.length > 1 && <small> {hub}</small>}
    </>
  )
}

export function labelOf(entry: Entry): string {
  if (entry.kind === 'answer') return S.commands[entry.answer.command] ?? entry.answer.command
  return S.events[entry.event.event_type] ?? entry.event.event_type
}

/** Everything else that is told, on one line. */
export function detailOf(entry: Entry): string {
  if (entry.kind === 'answer') {
    const { answer } = entry
    const end = answer.ok ? S.activity.ok : (answer.error?.message ?? '')
    return `${end} · ${formatDuration(answer.duration_ms)}${answer.replayed ? ` · ${S.activity.replayed}` : ''}`
  }
  const { event } = entry
  if (event.event_type === 'command_failed') return `${S.commands[event.command] ?? event.command}: ${event.code}`
  const parts = [
    event.from !== undefined && event.to !== undefined ? `${event.from} → ${event.to}` : '',
    event.message ?? '',
    'count' in event && event.count != null ? S.activity.times(event.count) : '',
    event.event_type === 'changed' ? event.changed.join(', ') : '',
  ]
  return parts.filter((part) => part !== '').join(' · ')
}
