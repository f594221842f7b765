import { useComputed, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { isCrashed } from '../../../../../contract/classify.ts'
import { actionsOf, runAction } from '../../actions.ts'
import { commandName, refusal } from '../../commands.ts'
import { Badge, IconButton, set } from '../../parts/controls.tsx'
import { openMenu } from '../../parts/overlays.tsx'
import { type AppProps, whyAway } from '../../parts/state.tsx'
import { type ColumnKey, filter, search, sort } from '../../preferences.ts'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, formatCount, terms } from '../../terms.ts'
import { BulkBar, SelectAll, selected } from './bulk.tsx'
import { COLUMNS, shownColumns } from './columns.tsx'
import { type Item, isDescending, type ListProps, listApps, useWindow } from './order.ts'
import { Overview, Toolbar } from './overview.tsx'

const text = defineStrings('apps', {
  actions: 'Actions',
  select: 'Select {name}',
  restart: 'Restart {name}',
  more: 'More for {name}',
  disabled: 'The app is disabled.',
  noMatch: 'No apps match.',
  noHubs: 'No hub is assigned to this fleet member.',
  members: 'Members of the fleet, and their hubs',
  empty: 'There are no apps yet. They appear when the list of a hub has been read.',
})

/** Returns the number of columns, including the columns for the selection and the actions. */
const widthOf = () => shownColumns.value.length + 2

export function Apps() {
  const { store } = usePage()
  const list = useMemo(() => listApps(store), [store])
  useEffect(() => list.end, [list])
  // Deselect apps when they are removed.
  useSignalEffect(() => {
    const known = new Set(store.hubs.value.flatMap(({ apps }) => [...apps.value.values()].map(({ topic }) => topic)))
    if (!selected.peek().isSubsetOf(known)) selected.value = selected.peek().intersection(known)
  })
  const items = list.items.value
  return (
    <div class="view">
      <h1 class="hidden">{terms.views.apps}</h1>
      <Overview list={list} />
      <Toolbar list={list} />
      <BulkBar list={list} />
      {items.some(({ kind }) => kind === 'app') ? (
        <Table list={list} />
      ) : (
        <p class="empty">{list.totals.value.counts.all > 0 ? text.noMatch : <WhyEmpty />}</p>
      )}
    </div>
  )
}

function WhyEmpty() {
  const { fleet, own } = usePage().store
  if (fleet.value === undefined || own.value.length > 0) return <>{text.empty}</>
  return (
    <>
      {text.noHubs} <a href={hrefOf({ at: 'bridge' })}>{text.members}</a>
    </>
  )
}

function Table({ list }: ListProps) {
  const items = list.items.value
  const body = useRef<HTMLTableSectionElement>(null)
  const [from, to] = useWindow(body, items)
  return (
    <table class="apps" aria-rowcount={items.length + 1} aria-label={terms.views.apps}>
      <thead>
        <tr aria-rowindex={1}>
          <th class="c-select" style={{ '--wide': '44px' }}>
            <SelectAll list={list} />
          </th>
          {shownColumns.value.map((key) => (
            <Head key={key} by={key} />
          ))}
          <th style={{ '--wide': '92px' }}>
            <span class="hidden">{text.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody ref={body}>
        <Space items={items.slice(0, from)} />
        {items
          .slice(from, to)
          .map((item, i) =>
            item.kind === 'app' ? (
              <AppRow key={item.entry.topic} entry={item.entry} place={from + i + 1} />
            ) : (
              <HubRow key={`hub ${item.hub.name}`} item={item} place={from + i + 1} />
            ),
          )}
        <Space items={items.slice(to)} />
      </tbody>
    </table>
  )
}

function Head({ by }: { readonly by: ColumnKey }) {
  const now = sort.value
  const isSorted = now.by === by
  const isDown = isDescending(now)
  const [wide, narrow] = COLUMNS[by].width ?? []
  return (
    <th
      class={`c-${by}`}
      aria-sort={isSorted ? (isDown ? 'descending' : 'ascending') : 'none'}
      style={wide === undefined ? {} : { '--wide': `${wide}px`, '--narrow': `${narrow}px` }}
    >
      <button type="button" onClick={() => set(sort, { by, isReversed: isSorted && !now.isReversed })}>
        {terms.columns[by]}
        <span class="order" aria-hidden="true">
          {isSorted && (isDown ? '↓' : '↑')}
        </span>
      </button>
    </th>
  )
}

/** An empty row that takes the space of the rows that are not rendered. */
function Space({ items }: { readonly items: readonly Item[] }) {
  if (items.length === 0) return null
  const hubs = items.filter(({ kind }) => kind === 'hub').length
  const height = `calc(${hubs} * var(--hub-height) + ${items.length - hubs} * var(--app-height))`
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a table row takes no focus.
    <tr class="space" aria-hidden="true">
      <td colSpan={widthOf()} style={{ height }} />
    </tr>
  )
}

function HubRow({ item: { hub, count }, place }: { item: Extract<Item, { kind: 'hub' }>; place: number }) {
  const { store } = usePage()
  const isOffline = hub.state.value === 'offline'
  const isWhole = filter.value === 'all' && search.value === ''
  return (
    <tr class="hub" aria-rowindex={place + 1}>
      <th colSpan={widthOf()} scope="colgroup">
        <div class="hub-head">
          <span class="hub-name">{hub.name}</span>
          <Badge tone={isOffline ? 'bad' : 'ok'}>{isOffline ? terms.offline : terms.online}</Badge>
          <small>{isWhole ? terms.apps({ count }) : formatCount(count)}</small>
        </div>
        {isOffline && <small class="bad-text">{whyAway(hub.since.value, store.reasonOf(hub))}</small>}
      </th>
    </tr>
  )
}

/** The row of an app, rendered again only when the app changes. `place` is the position in the whole list, from 1. */
function AppRow({ entry, place }: AppProps & { readonly place: number }) {
  const page = usePage()
  const isSelected = useComputed(() => selected.value.has(entry.topic)).value
  const isAway = useComputed(() => page.store.isAway(entry.hub)).value
  const hasCrashed = useComputed(() => isCrashed(entry.app.value)).value
  const classes = ['app', isAway ? 'away' : hasCrashed && 'crashed', isSelected && 'selected']
  return (
    <tr class={classes.filter((one) => one).join(' ')} aria-rowindex={place + 1}>
      <td class="c-select" style={{ gridArea: 'select' }}>
        <input
          type="checkbox"
          aria-label={text.select({ name: entry.name.value })}
          checked={isSelected}
          onChange={() => set(selected, selected.value.symmetricDifference(new Set([entry.topic])))}
        />
      </td>
      {shownColumns.value.map((key) => {
        const Cell = COLUMNS[key].cell
        return (
          <td key={key} class={`c-${key}`} style={{ gridArea: key }}>
            <Cell entry={entry} />
          </td>
        )
      })}
      <td class="c-actions" style={{ gridArea: 'actions' }}>
        <RowActions entry={entry} />
      </td>
    </tr>
  )
}

function RowActions({ entry }: AppProps) {
  const page = usePage()
  const isDisabled = useComputed(() => entry.app.value.enabled === false).value
  const name = entry.name.value
  return (
    <>
      <IconButton
        label={text.restart({ name })}
        title={commandName('restart')}
        glyph="restart"
        busy={entry.running.value !== undefined}
        refused={isDisabled ? text.disabled : refusal(page, entry.target, 'restart')}
        act={() => void runAction(entry, 'restart')}
      />
      <IconButton
        label={text.more({ name })}
        glyph="more"
        popup="menu"
        act={(opener) => openMenu(opener, name, actionsOf(entry, page))}
      />
    </>
  )
}
