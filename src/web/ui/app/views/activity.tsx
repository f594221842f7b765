/** The live list of events and answers. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { commandName } from '../commands.ts'
import { formatDuration } from '../format.ts'
import { type Entry, type Happening, happenings, isFailure } from '../live/activity.ts'
import type { Store } from '../live/store.ts'
import { Action, Badge, Chips, Search, set } from '../parts/controls.tsx'
import { HiddenHead, Time } from '../parts/layout.tsx'
import { eventName } from '../parts/state.tsx'
import { hrefOf } from '../route.ts'
import { usePage } from '../session.ts'
import { defineStrings } from '../strings.ts'

const text = defineStrings('activity', {
  title: 'Activity',
  search: 'Search activity',
  kind: 'Show',
  kinds: { all: 'All', events: 'Events', commands: 'Commands', failures: 'Failures' },
  pause: 'Pause',
  resume: 'Resume',
  resumeNew: 'Resume ({count} new)',
  columns: { time: 'Time', what: 'What', where: 'Where', details: 'Details', more: 'More' },
  bridge: 'bridge',
  done: 'done',
  duplicate: 'duplicate request',
  crashes: { one: '{count} crash', other: '{count} crashes' },
  empty: 'Nothing has happened yet. Events and commands appear here as they come.',
  noMatch: 'No entries match.',
  more: '{count} more',
})

const KINDS = ['all', 'events', 'commands', 'failures'] as const
type Kind = (typeof KINDS)[number]

const PASSES: Readonly<Record<Kind, (entry: Entry) => boolean>> = {
  all: () => true,
  events: ({ kind }) => kind === 'event',
  commands: ({ kind }) => kind === 'answer',
  failures: isFailure,
}

/** More would not help, and would slow the page down. */
const MOST_SHOWN = 200

export function Activity() {
  const { store } = usePage()
  const kind = useSignal<Kind>('all')
  const search = useSignal('')
  /** The entries at the time when it was paused. */
  const paused = useSignal<readonly Entry[] | undefined>(undefined)
  const all = paused.value ?? store.recent.value
  const wanted = search.value.trim().toLowerCase()
  const matching = all.filter(
    (entry) => PASSES[kind.value](entry) && (wanted === '' || searchable(entry, store).includes(wanted)),
  )
  const shown = happenings(matching).slice(-MOST_SHOWN).toReversed()
  const missed = paused.value === undefined ? 0 : newerThan(store.recent.value, paused.value)
  return (
    <div class="view">
      <h1>{text.title}</h1>
      <div class="toolbar">
        <Search label={text.search} value={search} />
        <Chips label={text.kind} options={KINDS} chosen={kind}>
          {(one) => text.kinds[one]}
        </Chips>
        <Action
          label={
            paused.value === undefined ? text.pause : missed === 0 ? text.resume : text.resumeNew({ count: missed })
          }
          glyph={paused.value === undefined ? 'pause' : 'play'}
          act={() => set(paused, paused.value === undefined ? store.recent.value : undefined)}
        />
      </div>
      {shown.length === 0 ? (
        <p class="empty">{all.length === 0 ? text.empty : text.noMatch}</p>
      ) : (
        <div class="card">
          <table class="list" aria-label={text.title}>
            <HiddenHead columns={text.columns} />
            <tbody>
              {shown.map((happening) => (
                <HappeningRows key={happening.entries[0]?.number} {...happening} store={store} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}

function searchable(entry: Entry, store: Store): string {
  const app = entry.hub !== null && entry.app !== null ? store.app(entry.hub, entry.app) : undefined
  const { facts, said } = detailOf(entry)
  const name = app?.app.peek().name ?? ''
  return `${entry.hub ?? ''} ${entry.app ?? ''} ${name} ${labelOf(entry)} ${facts} ${said}`.toLowerCase()
}

function newerThan(all: readonly Entry[], paused: readonly Entry[]): number {
  const last = paused.at(-1)?.number ?? 0
  return all.filter(({ number }) => number > last).length
}

/** Related entries on one line, which can be expanded. */
function HappeningRows({ lead, entries, store }: Happening & { readonly store: Store }) {
  const isOpen = useSignal(false)
  const rest = entries.filter((entry) => entry !== lead)
  // Show other failures too, unless a failed command already reports them.
  const failures = new Set(lead.kind === 'event' ? rest.filter(isFailure).map(labelOf) : [])
  return (
    <>
      <ActivityRow entry={lead} store={store} failures={failures.difference(new Set([labelOf(lead)]))}>
        {rest.length > 0 && (
          <button type="button" aria-expanded={isOpen.value} onClick={() => set(isOpen, !isOpen.value)}>
            {text.more({ count: rest.length })}
          </button>
        )}
      </ActivityRow>
      {isOpen.value && rest.toReversed().map((entry) => <ActivityRow key={entry.number} entry={entry} store={store} />)}
    </>
  )
}

interface ActivityRowProps {
  readonly entry: Entry
  /** For the app's name; without it, the list is about one app. */
  readonly store?: Store
  /** Names of other things that failed with it. */
  readonly failures?: ReadonlySet<string>
  readonly children?: ComponentChildren
}

/** An event or an answer as a line of a list. */
export function ActivityRow({ entry, store, failures = new Set(), children }: ActivityRowProps) {
  const { facts, said } = detailOf(entry)
  return (
    <tr>
      <td class="c-time">
        <Time at={entry.at} />
      </td>
      <td>
        <Badge tone={isFailure(entry) ? 'bad' : entry.kind === 'answer' ? 'ok' : 'quiet'}>{labelOf(entry)}</Badge>
        {[...failures].map((name) => (
          <Badge key={name} tone="bad">
            {name}
          </Badge>
        ))}
      </td>
      {store !== undefined && (
        <td class="c-app">
          <Where entry={entry} store={store} />
        </td>
      )}
      <td>
        {facts}
        {said !== '' && <div class="said">{said}</div>}
      </td>
      {store !== undefined && <td class="c-more">{children}</td>}
    </tr>
  )
}

function Where({ entry: { hub, app }, store }: { readonly entry: Entry; readonly store: Store }) {
  if (hub === null) return <>{text.bridge}</>
  if (app === null) return <>{hub}</>
  const known = store.app(hub, app)
  return (
    <>
      <a href={hrefOf({ at: 'app', hub, app })} title={app}>
        {known === undefined ? app : known.name.value}
      </a>
      {store.own.value.length > 1 && <small> {hub}</small>}
    </>
  )
}

function labelOf(entry: Entry): string {
  return entry.kind === 'answer' ? commandName(entry.answer.command) : eventName(entry.event.event_type)
}

/** Everything else: facts on one line, and the unchanged text of the app or the hub. */
function detailOf(entry: Entry): { readonly facts: string; readonly said: string } {
  if (entry.kind === 'answer') {
    const { ok, duration_ms, replayed, error } = entry.answer
    const facts = [ok && text.done, formatDuration(duration_ms), replayed && text.duplicate]
    return { facts: joined(facts), said: error?.message ?? '' }
  }
  const { event } = entry
  if (event.event_type === 'command_failed') return { facts: `${commandName(event.command)}: ${event.code}`, said: '' }
  if ('apps' in event) return { facts: event.apps.join(', '), said: '' }
  const facts = [
    event.from !== undefined && event.to !== undefined && `${event.from} → ${event.to}`,
    'count' in event && event.count != null && text.crashes({ count: event.count }),
    event.event_type === 'changed' && event.changed.join(', '),
  ]
  return { facts: joined(facts), said: event.message ?? '' }
}

const joined = (parts: readonly (string | false | undefined)[]) => parts.filter((part) => part).join(' · ')
