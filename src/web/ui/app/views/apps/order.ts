/** Which apps are listed, and in which order. */
import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { isCrashed } from '../../../../../guardian/classify.ts'
import type { App } from '../../../../../hub/app.ts'
import { collator } from '../../format.ts'
import type { AppEntry, HubEntry } from '../../live/entries.ts'
import type { Store } from '../../live/store.ts'

export const FILTERS = ['all', 'crashed', 'stopped', 'updates'] as const
export type Filter = (typeof FILTERS)[number]
export const SORTS = ['name', 'version', 'state', 'enabled', 'cpu', 'memory'] as const
export type Sort = (typeof SORTS)[number]

/** A line of the list. */
export type Item =
  | { readonly kind: 'hub'; readonly hub: HubEntry; readonly count: number }
  | { readonly kind: 'app'; readonly entry: AppEntry }

/** What the viewer asked for; it stays when somebody comes back to the list. */
export const search = signal('')
export const filter = signal<Filter>('all')
export const sort = signal<{ readonly by: Sort; readonly down: boolean }>({ by: 'name', down: false })
export const grouped = signal(true)

const isStopped = (app: App) => !isCrashed(app) && (app.state === 'stopped' || app.enabled === false)

const PASSES: Readonly<Record<Filter, (app: App) => boolean>> = {
  all: () => true,
  crashed: isCrashed,
  stopped: isStopped,
  updates: ({ update_available }) => update_available === true,
}

/** The worst first: that is what one looks for. */
const STATE_ORDER: Readonly<Record<string, number>> = { crashed: 0, stopping: 1, starting: 2, stopped: 3, running: 4 }

const COMPARE: Readonly<Record<Sort, (one: App, other: App) => number>> = {
  name: byName,
  version: (one, other) => collator.compare(one.version ?? '', other.version ?? ''),
  state: (one, other) => stateOrder(one) - stateOrder(other),
  enabled: (one, other) => Number(other.enabled) - Number(one.enabled),
  // What uses most is what one looks for.
  cpu: (one, other) => (other.cpu_percent ?? -1) - (one.cpu_percent ?? -1),
  memory: (one, other) => (other.memory_bytes ?? -1) - (one.memory_bytes ?? -1),
}

function byName(one: App, other: App): number {
  return collator.compare(one.name ?? one.id, other.name ?? other.id)
}

function stateOrder(app: App): number {
  return isCrashed(app) ? 0 : (STATE_ORDER[app.state ?? ''] ?? 5)
}

export interface AppList {
  readonly items: ReadonlySignal<readonly Item[]>
  readonly counts: ReadonlySignal<Readonly<Record<Filter, number>>>
  readonly end: () => void
}

/** Rows must not jump about while somebody aims at one: changes of apps alone put them in order no more than so often. */
const ORDER_MS = 1_000

export function listApps(store: Store): AppList {
  const items: Signal<readonly Item[]> = signal([])
  const counts = signal<Readonly<Record<Filter, number>>>({ all: 0, crashed: 0, stopped: 0, updates: 0 })
  let ordered = -1
  const tick = signal(0)
  const members = computed(() => store.own.value.map((hub) => ({ hub, apps: [...hub.apps.value.values()] })))
  const stop = effect(() => {
    void tick.value
    ordered = store.appChanges
    const wanted = { text: search.value.trim().toLowerCase(), filter: filter.value, ...sort.value }
    const hubs = members.value
    counts.value = count(hubs.flatMap(({ apps }) => apps))
    const fresh = arrange(hubs, wanted, grouped.value && hubs.length > 1)
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

interface Wanted {
  readonly text: string
  readonly filter: Filter
  readonly by: Sort
  readonly down: boolean
}

interface Members {
  readonly hub: HubEntry
  readonly apps: readonly AppEntry[]
}

function arrange(hubs: readonly Members[], wanted: Wanted, isGrouped: boolean): Item[] {
  const item = (entry: AppEntry): Item => ({ kind: 'app', entry })
  if (!isGrouped)
    return sorted(
      hubs.flatMap(({ apps }) => apps),
      wanted,
    ).map(item)
  return hubs.flatMap(({ hub, apps }) => {
    const shown = sorted(apps, wanted)
    const head: Item = { kind: 'hub', hub, count: shown.length }
    return [head, ...shown.map(item)]
  })
}

function sorted(entries: readonly AppEntry[], { text, filter: only, by, down }: Wanted): AppEntry[] {
  const passes = PASSES[only]
  const shown = entries.filter(({ id, app }) => {
    const now = app.peek()
    return passes(now) && (text === '' || `${now.name ?? ''} ${id} ${now.author ?? ''}`.toLowerCase().includes(text))
  })
  const sign = down ? -1 : 1
  return shown.sort(({ app: one }, { app: other }) => {
    const [a, b] = [one.peek(), other.peek()]
    return sign * COMPARE[by](a, b) || byName(a, b)
  })
}

function count(entries: readonly AppEntry[]): Record<Filter, number> {
  const counts = { all: 0, crashed: 0, stopped: 0, updates: 0 }
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
