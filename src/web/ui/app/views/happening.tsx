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
  const { facts, said } = detailOf(entry)
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
      <td class="c-what">
        {facts}
        {said !== '' && <div class="said">{said}</div>}
      </td>
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

/** Everything else: facts on one line, and what the app or the hub said, as it said it. */
export function detailOf(entry: Entry): { readonly facts: string; readonly said: string } {
  if (entry.kind === 'answer') {
    const { answer } = entry
    const facts = [
      answer.ok ? S.activity.ok : '',
      formatDuration(answer.duration_ms),
      answer.replayed ? S.activity.replayed : '',
    ]
    return { facts: joined(facts), said: answer.error?.message ?? '' }
  }
  const { event } = entry
  if (event.event_type === 'command_failed') {
    return { facts: `${S.commands[event.command] ?? event.command}: ${event.code}`, said: '' }
  }
  const facts = [
    event.from !== undefined && event.to !== undefined ? `${event.from} → ${event.to}` : '',
    'count' in event && event.count != null ? S.activity.times(event.count) : '',
    event.event_type === 'changed' ? event.changed.join(', ') : '',
  ]
  return { facts: joined(facts), said: event.message ?? '' }
}

const joined = (parts: readonly string[]) => parts.filter((part) => part !== '').join(' · ')
