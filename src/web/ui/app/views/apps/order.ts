/** Sorts and filters the list of apps. In a long list, only the visible rows and some around them are rendered. */
import { computed, effect, signal, untracked, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { isCrashed } from '../../../../../contract/classify.ts'
import type { App } from '../../../../../hub/app.ts'
import { type AppEntry, type HubEntry, readTopic, type Store } from '../../live/store.ts'
import { needsAttention } from '../../parts/state.tsx'
import { compact, FILTERS, type Filter, filter, grouped, search, sort } from '../../preferences.ts'
import { collator } from '../../terms.ts'
import { COLUMNS } from './columns.tsx'

export type Item =
  | { readonly kind: 'hub'; readonly hub: HubEntry; readonly count: number }
  | { readonly kind: 'app'; readonly entry: AppEntry }

const PASSES: Readonly<Record<Filter, (app: App, entry: AppEntry, store: Store) => boolean>> = {
  attention: (_, entry, store) => needsAttention(entry, store),
  all: () => true,
  crashed: isCrashed,
  given_up: (_, entry) => readTopic(entry, 'guard')?.state === 'given_up',
  stopped: (app) => !isCrashed(app) && (app.state === 'stopped' || app.enabled === false),
  updates: ({ update_available }) => update_available === true,
}

function compare(one: string | number, other: string | number): number {
  return typeof one === 'number' && typeof other === 'number' ? one - other : collator.compare(`${one}`, `${other}`)
}

/** Returns `true` if the greatest value of the sorted column is first. */
export const isDescending = ({ by, isReversed }: typeof sort.value) =>
  (COLUMNS[by].isDescending ?? false) !== isReversed

export type AppList = Readonly<ReturnType<typeof listApps>>

export type ListProps = { readonly list: AppList }

/** Minimum time between two sorts, so that rows do not move away from the pointer. */
const ORDER_MS = 1_000
const NONE: Readonly<Record<Filter, number>> = { attention: 0, all: 0, crashed: 0, given_up: 0, stopped: 0, updates: 0 }

export function listApps(store: Store) {
  const items = signal<readonly Item[]>([])
  /** The totals cover all apps, and change only when the list is sorted. */
  const totals = signal({ counts: NONE, memory: memoryOf([]) })
  let ordered = -1
  const members = computed(() => store.own.value.map((hub) => ({ hub, apps: [...hub.apps.value.values()] })))
  const order = () => {
    const hubs = members.value
    ordered = store.appChanges
    totals.value = { counts: count(hubs, store), memory: memoryOf(hubs) }
    items.value = arrange(hubs, grouped.value && hubs.length > 1, store)
  }
  const stop = effect(() => {
    void [members.value, filter.value, search.value, sort.value, grouped.value]
    // Do not subscribe to the apps here. The timer applies their changes.
    untracked(order)
  })
  const timer = setInterval(() => {
    if (store.appChanges !== ordered) order()
  }, ORDER_MS)
  const end = () => {
    clearInterval(timer)
    stop()
  }
  return { items, totals, end }
}

type Members = { readonly hub: HubEntry; readonly apps: readonly AppEntry[] }

function arrange(hubs: readonly Members[], isGrouped: boolean, store: Store): Item[] {
  const items = (entries: readonly AppEntry[]) => shownOf(entries, store).map((entry): Item => ({ kind: 'app', entry }))
  if (!isGrouped) return items(hubs.flatMap(({ apps }) => apps))
  return hubs.flatMap(({ hub, apps }) => {
    const shown = items(apps)
    return [{ kind: 'hub', hub, count: shown.length }, ...shown]
  })
}

/** Returns the apps that pass the filter and the search, in the chosen order. */
function shownOf(entries: readonly AppEntry[], store: Store): AppEntry[] {
  const passes = PASSES[filter.value]
  const words = search.value.trim().toLowerCase()
  const { value } = COLUMNS[sort.value.by]
  const sign = isDescending(sort.value) ? -1 : 1
  return entries
    .map((entry) => ({ entry, app: entry.app.peek() }))
    .filter(({ entry, app }) => {
      const searched = () => `${app.name ?? ''} ${app.id} ${app.author ?? ''}`.toLowerCase()
      return passes(app, entry, store) && (words === '' || searched().includes(words))
    })
    .map(({ entry, app }) => ({ entry, value: value(app, entry), name: COLUMNS.name.value(app, entry) }))
    .sort((a, b) => sign * compare(a.value, b.value) || compare(a.name, b.name))
    .map(({ entry }) => entry)
}

function count(hubs: readonly Members[], store: Store) {
  const counts = { ...NONE }
  for (const entry of hubs.flatMap(({ apps }) => apps)) {
    for (const one of FILTERS) if (PASSES[one](entry.app.value, entry, store)) counts[one] += 1
  }
  return counts
}

/** Returns the memory use of each hub. Omits hubs whose apps report no memory use. */
function memoryOf(hubs: readonly Members[]): ReadonlyMap<string, number> {
  const memory = new Map<string, number>()
  for (const { hub, apps } of hubs) {
    for (const { app } of apps) {
      const bytes = app.value.memory_bytes
      if (bytes !== null) memory.set(hub.name, (memory.get(hub.name) ?? 0) + bytes)
    }
  }
  return memory
}

/** Lists of at most this length are rendered completely, so that the browser's search works. */
const ALL_DRAWN = 100
/** Minimum number of rows rendered before and after the visible rows. The range changes in steps of this number. */
const AROUND = 5
/** Number of rows to render while the scroll position is unknown. */
const FIRST = 30

/**
 * Returns the range of rows to render: the index of the first row, and the index after the last row.
 * @param body the table's body, whose style defines the heights of the rows
 */
export function useWindow(body: RefObject<HTMLElement | null>, items: readonly Item[]): [from: number, to: number] {
  const count = items.length
  const from = useSignal(0)
  const to = useSignal(FIRST)
  useLayoutEffect(() => {
    const list = body.current
    if (count <= ALL_DRAWN || list === null) return
    // Measure each time, because the height of a row depends on the width of the list.
    const update = () => {
      const heights = heightsIn(list)
      const above = -list.getBoundingClientRect().top
      const first = Math.floor(lineAt(items, heights, above) / AROUND) * AROUND
      const last = Math.ceil(lineAt(items, heights, above + innerHeight) / AROUND) * AROUND
      from.value = Math.max(0, first - AROUND)
      to.value = Math.min(count, last + 2 * AROUND)
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [items, compact.value])
  if (count <= ALL_DRAWN) return [0, count]
  // If the list has become shorter, render its first rows until the effect has read the scroll position.
  return to.value > count ? [0, FIRST] : [from.value, to.value]
}

/** Returns the height of each kind of row, in pixels. */
function heightsIn(list: HTMLElement): Readonly<Record<Item['kind'], number>> {
  const style = getComputedStyle(list)
  const height = (kind: Item['kind']) => Number.parseFloat(style.getPropertyValue(`--${kind}-height`))
  return { app: height('app'), hub: height('hub') }
}

/** Returns the index of the row at this distance (pixels) from the top of the list. */
function lineAt(items: readonly Item[], heights: ReturnType<typeof heightsIn>, distance: number): number {
  let end = 0
  const line = items.findIndex(({ kind }) => {
    end += heights[kind]
    return end > distance
  })
  return line === -1 ? items.length : line
}
