import { useComputed, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { commandName } from '../commands.ts'
import { dayBefore, dayOf, type Entry, isFailure, type Row, rowsOf } from '../live/activity.ts'
import type { Store } from '../live/store.ts'
import { Action, Badge, Chips, Search, set, Table, Time, useNow } from '../parts/controls.tsx'
import { hrefOf, inAddress } from '../route.ts'
import { usePage } from '../session.ts'
import { defineStrings, formatDay, formatDuration, inLanguage, listed, terms } from '../terms.ts'

const text = defineStrings('activity', {
  search: 'Search activity',
  kind: 'Show',
  kinds: { all: 'All', events: 'Events', commands: 'Commands', failures: 'Failures' },
  resume: 'Resume',
  resumeNew: 'Resume ({count} new)',
  columns: { time: 'Time', what: 'What', where: 'Where', details: 'Details', more: 'More' },
  bridge: 'bridge',
  done: 'done',
  duplicate: 'duplicate request',
  crashes: { one: '{count} crash', other: '{count} crashes' },
  empty: 'Nothing has happened yet. New events and commands appear here.',
  noMatch: 'No entries match.',
  more: '{count} more',
  times: '×{count}',
  days: { today: 'Today', yesterday: 'Yesterday' },
  showMore: 'Show more',
  end: 'There are no older entries.',
})

const KINDS = ['all', 'events', 'commands', 'failures'] as const
type Kind = (typeof KINDS)[number]

const PASSES: Readonly<Record<Kind, (entry: Entry) => boolean>> = {
  all: () => true,
  events: ({ kind }) => kind === 'event',
  commands: ({ kind }) => kind === 'answer',
  failures: isFailure,
}

const kind = inAddress<Kind>('kind', 'pushState', 'all', (stored) => KINDS.find((one) => one === stored) ?? 'all')
const search = inAddress<string>('search', 'replaceState', '', (stored) => stored ?? '')

/** The number of lines that are shown at first, and that each click adds. */
const STEP = 50

export function Activity() {
  const { store } = usePage()
  /** The entries at the time when the user paused the list; `undefined` if it is not paused. */
  const paused = useSignal<readonly Entry[] | undefined>(undefined)
  const all = paused.value ?? store.recent.value
  const wanted = search.value.trim().toLowerCase()
  const passes = PASSES[kind.value]
  const matching = all.filter((entry) => passes(entry) && (wanted === '' || searchable(entry, store).includes(wanted)))
  const last = paused.value?.at(-1)?.number ?? 0
  const missed = paused.value === undefined ? 0 : store.recent.value.filter(({ number }) => number > last).length
  return (
    <div class="view">
      <h1>{terms.views.activity}</h1>
      <div class="toolbar">
        <Search label={text.search} value={search} />
        <Chips label={text.kind} options={KINDS} names={text.kinds} chosen={kind} />
        <Action
          label={
            paused.value === undefined ? terms.pause : missed === 0 ? text.resume : text.resumeNew({ count: missed })
          }
          glyph={paused.value === undefined ? 'pause' : 'play'}
          act={() => set(paused, paused.value === undefined ? store.recent.value : undefined)}
        />
      </div>
      {matching.length === 0 ? (
        <p class="empty">{all.length === 0 ? text.empty : text.noMatch}</p>
      ) : (
        <Days key={`${kind.value} ${wanted}`} rows={rowsOf(matching)} store={store} />
      )}
    </div>
  )
}

function Days({ rows, store }: { readonly rows: readonly Row[]; readonly store: Store }) {
  const now = useNow()
  const today = useComputed(() => dayOf(now.value)).value
  const limit = useSignal(STEP)
  const list = useRef<HTMLDivElement>(null)
  const focused = useRef<number | undefined>(undefined)
  useLayoutEffect(() => {
    if (focused.current === undefined) return
    list.current?.querySelectorAll<HTMLElement>('tr[tabindex]')[focused.current]?.focus()
    focused.current = undefined
  })
  const showMore = () => {
    focused.current = limit.value
    limit.value += STEP
  }
  return (
    <div ref={list}>
      {[...Map.groupBy(rows.slice(0, limit.value), ({ at }) => dayOf(at))].map(([day, shown]) => (
        <section key={day} class="day">
          <h2>{dayName(day, today)}</h2>
          <div class="card">
            <Table label={dayName(day, today)} columns={Object.values(text.columns)} head="hidden">
              {shown.map((row) => (
                <GroupRows key={row.entries[0]?.number} row={row} store={store} />
              ))}
            </Table>
          </div>
        </section>
      ))}
      {rows.length > limit.value ? (
        <Action label={text.showMore} act={showMore} />
      ) : (
        <p class="empty small">{text.end}</p>
      )}
    </div>
  )
}

function dayName(day: number, today: number): string {
  if (day === today) return text.days.today
  return day === dayBefore(today) ? text.days.yesterday : formatDay(day)
}

function searchable(entry: Entry, store: Store): string {
  const app = entry.hub !== null && entry.app !== null ? store.app(entry.hub, entry.app) : undefined
  const { facts, message } = detailOf(entry)
  const name = app?.app.peek().name ?? ''
  return `${entry.hub ?? ''} ${entry.app ?? ''} ${name} ${labelOf(entry)} ${facts} ${message}`.toLowerCase()
}

/** Shows a group on one line, which users can expand. @param store supplies app names in a list of several apps */
export function GroupRows({ row, store }: { readonly row: Row; readonly store?: Store }) {
  const { lead, entries, count, apps } = row
  const isOpen = useSignal(false)
  const isOfMany = apps.size > 1
  const rest = isOfMany ? entries : entries.filter((entry) => entry !== lead)
  // Show the names of other failures of the group, unless the line already reports a failed command.
  const failures = new Set(lead.kind === 'event' ? rest.filter(isFailure).map(labelOf) : [])
  failures.delete(labelOf(lead))
  const content = isOfMany && store !== undefined ? updatesOf(row, store) : contentOf(lead, store, count, failures)
  const more = rest.length > 0 && (
    <button type="button" aria-expanded={isOpen.value} onClick={() => set(isOpen, !isOpen.value)}>
      {text.more({ count: rest.length })}
    </button>
  )
  return (
    <>
      <Line {...content} more={more} />
      {isOpen.value && rest.toReversed().map((entry) => <Line key={entry.number} {...contentOf(entry, store)} />)}
    </>
  )
}

interface Content {
  readonly at: number
  readonly what: ComponentChildren
  /** The hub and app; `false` in the list of one app, which has neither this column nor headings for the days. */
  readonly where: ComponentChildren
  readonly details: ComponentChildren
}

const MAX_NAMED = 5

function updatesOf({ lead: { at, hub }, apps }: Row, store: Store): Content {
  const names = [...apps].map((app) => (hub === null ? undefined : store.app(hub, app)?.name.value) ?? app)
  return {
    at,
    what: <Badge tone="quiet">{terms.events['updated']}</Badge>,
    where: (
      <>
        {terms.apps({ count: apps.size })} {store.own.value.length > 1 && <small>{hub}</small>}
      </>
    ),
    details: listed(names, MAX_NAMED),
  }
}

/** @param count the number of equal groups @param failures the names of the other failures in the group */
function contentOf(entry: Entry, store?: Store, count = 1, failures: ReadonlySet<string> = new Set()): Content {
  const { facts, message } = detailOf(entry)
  return {
    at: entry.at,
    what: (
      <>
        <Badge tone={isFailure(entry) ? 'bad' : entry.kind === 'answer' ? 'ok' : 'quiet'}>{labelOf(entry)}</Badge>
        {count > 1 && <small> {text.times({ count })}</small>}
        {[...failures].map((name) => (
          <Badge key={name} tone="bad">
            {name}
          </Badge>
        ))}
      </>
    ),
    where: store !== undefined && <Where entry={entry} store={store} />,
    details: (
      <>
        {facts}
        {message !== '' && <div class="said">{message}</div>}
      </>
    ),
  }
}

/** Only a group's line has the button `more` and can be focused: showing more lines focuses the first new group. */
function Line({ at, what, where, details, more }: Content & { readonly more?: ComponentChildren }) {
  return (
    <tr tabIndex={more === undefined ? undefined : -1}>
      <td class="c-time">
        <Time at={at} clock={where !== false} />
      </td>
      <td>{what}</td>
      {where !== false && <td class="c-app">{where}</td>}
      <td>{details}</td>
      <td class="c-more">{more}</td>
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
  return entry.kind === 'answer' ? commandName(entry.answer.command) : terms.events[entry.event.event_type]
}

/** Returns the details of an entry. `message` is the unchanged text from the app or the hub. */
function detailOf(entry: Entry): { readonly facts: string; readonly message: string } {
  if (entry.kind === 'answer') {
    const { ok, duration_ms, replayed, error } = entry.answer
    const facts = [ok && text.done, formatDuration(duration_ms), replayed && text.duplicate]
    return { facts: joined(facts), message: error === undefined ? '' : inLanguage(error.message) }
  }
  const { event } = entry
  if (event.event_type === 'command_failed')
    return { facts: `${commandName(event.command)}: ${event.code}`, message: '' }
  if ('apps' in event) return { facts: event.apps.join(', '), message: '' }
  const facts = [
    event.from !== undefined && event.to !== undefined && `${event.from} → ${event.to}`,
    'count' in event && event.count != null && text.crashes({ count: event.count }),
    event.event_type === 'changed' && event.changed.join(', '),
  ]
  return { facts: joined(facts), message: event.message ?? '' }
}

const joined = (parts: readonly (string | false | undefined)[]) => parts.filter((part) => part).join(' · ')
