/** Which apps are listed, and in which order. */
import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { isCrashed } from '../../../../../contract/classify.ts'
import type { App } from '../../../../../hub/app.ts'
import { collator } from '../../format.ts'
import type { AppEntry, HubEntry } from '../../live/entries.ts'
import type { Store } from '../../live/store.ts'
import { FILTERS, type Filter, filter, grouped, search, sort } from '../../preferences.ts'
import { COLUMNS } from './columns.tsx'

/** A line of the list. */
export type Item =
  | { readonly kind: 'hub'; readonly hub: HubEntry; readonly count: number }
  | { readonly kind: 'app'; readonly entry: AppEntry }

const PASSES: Readonly<Record<Filter, (app: App) => boolean>> = {
  all: () => true,
  crashed: isCrashed,
  stopped: (app) => !isCrashed(app) && (app.state === 'stopped' || app.enabled === false),
  updates: ({ update_available }) => update_available === true,
}

function compare(one: string | number, other: string | number): number {
  return typeof one === 'number' && typeof other === 'number' ? one - other : collator.compare(`${one}`, `${other}`)
}

/** Whether the greatest value of the sorted column comes first. */
export const isDescending = ({ by, isReversed }: typeof sort.value) =>
  (COLUMNS[by].isDescending ?? false) !== isReversed

export interface AppList {
  readonly items: ReadonlySignal<readonly Item[]>
  readonly counts: ReadonlySignal<Readonly<Record<Filter, number>>>
  readonly end: () => void
}

/** How often changes of apps can sort the list: rows must not jump away from a pointer. */
const ORDER_MS = 1_000
const NONE = { all: 0, crashed: 0, stopped: 0, updates: 0 }

export function listApps(store: Store): AppList {
  const items: Signal<readonly Item[]> = signal([])
  const counts = signal(NONE)
  let ordered = -1
  const tick = signal(0)
  const members = computed(() => store.own.value.map((hub) => ({ hub, apps: [...hub.apps.value.values()] })))
  const stop = effect(() => {
    void tick.value
    ordered = store.appChanges
    const hubs = members.value
    counts.value = count(hubs.flatMap(({ apps }) => apps))
    const fresh = arrange(hubs, grouped.value && hubs.length > 1)
    if (!sameItems(items.peek(), fresh)) items.value = fresh
  })
  const timer = setInterval(() => {
    if (store.appChanges !== ordered) tick.value += 1
  }, ORDER_MS)
  const end = () => {
    clearInterval(timer)
    stop()
  }
  return { items, counts, end }
}

interface Members {
  readonly hub: HubEntry
  readonly apps: readonly AppEntry[]
}

function arrange(hubs: readonly Members[], isGrouped: boolean): Item[] {
  const items = (entries: readonly AppEntry[]) => shownOf(entries).map((entry): Item => ({ kind: 'app', entry }))
  if (!isGrouped) return items(hubs.flatMap(({ apps }) => apps))
  return hubs.flatMap(({ hub, apps }) => {
    const shown = items(apps)
    return [{ kind: 'hub', hub, count: shown.length }, ...shown]
  })
}

/** The apps that match the filter and the search, in order. */
function shownOf(entries: readonly AppEntry[]): AppEntry[] {
  const passes = PASSES[filter.value]
  const words = search.value.trim().toLowerCase()
  const { value } = COLUMNS[sort.value.by]
  const { value: name } = COLUMNS.name
  const sign = isDescending(sort.value) ? -1 : 1
  return entries
    .map((entry) => ({ entry, app: entry.app.peek() }))
    .filter(({ app }) => {
      const searched = () => `${app.name ?? ''} ${app.id} ${app.author ?? ''}`.toLowerCase()
      return passes(app) && (words === '' || searched().includes(words))
    })
    .sort(({ app: a }, { app: b }) => sign * compare(value(a), value(b)) || compare(name(a), name(b)))
    .map(({ entry }) => entry)
}

function count(entries: readonly AppEntry[]): Record<Filter, number> {
  const counts = { ...NONE }
  for (const { app } of entries) {
    for (const one of FILTERS) if (PASSES[one](app.peek())) counts[one] += 1
  }
  return counts
}

function sameItems(one: readonly Item[], other: readonly Item[]): boolean {
  return one.length === other.length && one.every((item, i) => sameItem(item, other[i]))
}

function sameItem(one: Item, other: Item | undefined): boolean {
  if (one.kind === 'app') return other?.kind === 'app' && one.entry === other.entry
  return other?.kind === 'hub' && one.hub === other.hub && one.count === other.count
}
