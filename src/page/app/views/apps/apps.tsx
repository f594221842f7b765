/** All apps of all hubs. */
import { useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Door } from '../../commands.ts'
import { formatCount } from '../../format.ts'
import { useMedia } from '../../parts/media.ts'
import { Badge } from '../../parts/small.tsx'
import { S } from '../../strings.ts'
import { BulkBar } from './bulk.tsx'
import { filter, type Item, listApps, SORTS, type Sort, search, sort } from './order.ts'
import { AppRow } from './row.tsx'
import { selected } from './selection.ts'
import { Toolbar } from './toolbar.tsx'
import { useWindow } from './window.ts'

/** Pixels of each kind of line, as the style sheet has them. */
const ROWS = { app: 52, hub: 46 }
const CARDS = { app: 148, hub: 46 }
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
  const heights = useMedia('(max-width: 720px)') ? CARDS : ROWS
  const tops = useMemo(() => {
    let top = 0
    return [
      0,
      ...items.map(({ kind }) => {
        top += heights[kind]
        return top
      }),
    ]
  }, [items, heights])
  const { from, to } = useWindow(body, tops).value
  const end = tops.at(-1) ?? 0
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
        <Space height={tops[from] ?? 0} />
        {items
          .slice(from, to)
          .map((item, i) =>
            item.kind === 'app' ? (
              <AppRow key={item.entry.topic} entry={item.entry} door={door} place={from + i + 1} />
            ) : (
              <HubRow key={`hub ${item.hub.name}`} item={item} place={from + i + 1} />
            ),
          )}
        <Space height={end - (tops[to] ?? end)} />
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

function HubRow({ item: { hub, count }, place }: { item: Extract<Item, { kind: 'hub' }>; place: number }) {
  const info = hub.info.value
  return (
    <tr class="hub" aria-rowindex={place + 1}>
      <th colSpan={COLUMNS} scope="colgroup">
        <span class="hub-name">{hub.name}</span>
        {hub.state.value === 'offline' ? (
          <Badge tone="bad">{info?.reason === undefined ? S.offline : `${S.offline}: ${S.reason(info.reason)}`}</Badge>
        ) : (
          <Badge tone="ok">{S.online}</Badge>
        )}
        <small>{filter.value === 'all' && search.value === '' ? S.apps.count(count) : formatCount(count)}</small>
      </th>
    </tr>
  )
}
