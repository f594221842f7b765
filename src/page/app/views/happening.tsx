/** An event or an answer as a line of a list. */
import { formatDuration } from '../format.ts'
import { type Entry, isFailure } from '../live/happenings.ts'
import { Badge, Time } from '../parts/small.tsx'
import { hrefOf } from '../route.ts'
import { S } from '../strings.ts'

export function HappeningRow({ entry, withApp }: { readonly entry: Entry; readonly withApp: boolean }) {
  const { hub, app, at } = entry
  return (
    <tr>
      <td class="c-time">
        <Time at={at} />
      </td>
      <td>
        <Badge tone={isFailure(entry) ? 'bad' : entry.kind === 'answer' ? 'ok' : 'quiet'}>{labelOf(entry)}</Badge>
      </td>
      {withApp && (
        <td class="c-app">
          {app !== null && hub !== null ? (
            <a href={hrefOf({ at: 'app', hub, app })}>{app}</a>
          ) : (
            (hub ?? S.bridge.itself)
          )}
        </td>
      )}
      <td class="c-what">{detailOf(entry)}</td>
    </tr>
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
