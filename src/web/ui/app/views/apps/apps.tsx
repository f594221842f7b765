/** All apps of all hubs. */
import { useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Door } from '../../commands.ts'
import { formatCount } from '../../format.ts'
import type { Store } from '../../live/store.ts'
import { Badge } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import { BulkBar } from './bulk.tsx'
import { filter, type Item, listApps, SORTS, type Sort, search, sort } from './order.ts'
import { AppRow } from './row.tsx'
import { selected } from './selection.ts'
import { Toolbar } from './toolbar.tsx'
import { useWindow } from './window.ts'

const COLUMNS = 8

export function Apps({ door }: { readonly door: Door }) {
  const { store } = door
  const list = useMemo(() => listApps(store), [store])
  useEffect(() => list.end, [list])
  // What is gone is not selected.
  useSignalEffect(() => {
    const known = new Set(store.hubs.value.flatMap(({ apps }) => [...apps.value.values()].map(({ topic }) => topic)))
    const left = [...selected.peek()].filter((topic) => known.has(topic))
    if (left.length !== selected.peek().size) selected.value = new Set(left)
  })
  const items = list.items.value
  const hasApps = list.counts.value.all > 0
  return (
    <div class="view">
      <h1 class="hidden">{S.apps.title}</h1>
      <Toolbar list={list} store={store} />
      <BulkBar door={door} items={items} />
      {items.some(({ kind }) => kind === 'app') ? (
        <Table items={items} door={door} />
      ) : (
        <p class="empty">{hasApps ? S.apps.nothingFound : S.apps.noApps}</p>
      )}
    </div>
  )
}

function Table({ items, door }: { readonly items: readonly Item[]; readonly door: Door }) {
  const body = useRef<HTMLTableSectionElement>(null)
  const { from, to, above, below } = useWindow(body, items).value
  return (
    <table class="apps" aria-rowcount={items.length + 1} aria-label={S.apps.title}>
      <thead>
        <tr aria-rowindex={1}>
          <th class="c-select">
            <span class="hidden">{S.apps.selection}</span>
          </th>
          {SORTS.map((by) => (
            <SortHead key={by} by={by} />
          ))}
          <th class="c-actions">
            <span class="hidden">{S.apps.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody ref={body}>
        <Space height={above} />
        {items
          .slice(from, to)
          .map((item, i) =>
            item.kind === 'app' ? (
              <AppRow key={item.entry.topic} entry={item.entry} door={door} place={from + i + 1} />
            ) : (
              <HubRow key={`hub ${item.hub.name}`} item={item} store={door.store} place={from + i + 1} />
            ),
          )}
        <Space height={below} />
      </tbody>
    </table>
  )
}

function SortHead({ by }: { readonly by: Sort }) {
  const { by: current, down } = sort.value
  const isCurrent = current === by
  const order = isCurrent ? (down ? 'descending' : 'ascending') : 'none'
  return (
    <th class={`c-${by}`} aria-sort={order}>
      <button
        type="button"
        onClick={() => {
          sort.value = { by, down: isCurrent && !down }
        }}
      >
        {S.apps.columns[by]}
        <span class="order" aria-hidden="true">
          {isCurrent ? (down ? '↑' : '↓') : ''}
        </span>
      </button>
    </th>
  )
}

/** In place of the lines that are not drawn. */
function Space({ height }: { readonly height: number }) {
  if (height <= 0) return null
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a line of a table takes no focus.
    <tr class="space" aria-hidden="true">
      <td colSpan={COLUMNS} style={{ height: `${height}px` }} />
    </tr>
  )
}

interface HubRowProps {
  readonly item: Extract<Item, { kind: 'hub' }>
  readonly store: Store
  readonly place: number
}

function HubRow({ item: { hub, count }, store, place }: HubRowProps) {
  const isOffline = hub.state.value === 'offline'
  return (
    <tr class="hub" aria-rowindex={place + 1}>
      <th colSpan={COLUMNS} scope="colgroup">
        <div class="hub-head">
          <span class="hub-name">{hub.name}</span>
          <Badge tone={isOffline ? 'bad' : 'ok'}>{isOffline ? S.offline : S.online}</Badge>
          <small>{filter.value === 'all' && search.value === '' ? S.apps.count(count) : formatCount(count)}</small>
        </div>
        {isOffline && <small>{S.away.why(store.reasonOf(hub), hub.since.value)}</small>}
      </th>
    </tr>
  )
}
