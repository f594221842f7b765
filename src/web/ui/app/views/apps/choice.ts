/** How the list is searched, filtered and sorted. It is kept when another view is opened or the page is loaded again. */
import { effect, signal } from '@preact/signals'
import * as v from 'valibot'
import { parseJson } from '../../live/payload.ts'
import { store, stored } from '../../storage.ts'

export const FILTERS = ['all', 'crashed', 'stopped', 'updates'] as const
export type Filter = (typeof FILTERS)[number]
export const COLUMN_KEYS = ['name', 'version', 'state', 'enabled', 'cpu', 'memory'] as const
export type ColumnKey = (typeof COLUMN_KEYS)[number]

const CHOICE = v.object({
  search: v.string(),
  filter: v.picklist(FILTERS),
  sort: v.object({ by: v.picklist(COLUMN_KEYS), isReversed: v.boolean() }),
  grouped: v.boolean(),
})
const FIRST: v.InferOutput<typeof CHOICE> = {
  search: '',
  filter: 'all',
  sort: { by: 'name', isReversed: false },
  grouped: true,
}

const kept = v.safeParse(CHOICE, parseJson(stored('sessionStorage', 'list') ?? ''))
const first = kept.success ? kept.output : FIRST
export const search = signal(first.search)
export const filter = signal(first.filter)
export const sort = signal(first.sort)
/** By hub, where there are several. */
export const grouped = signal(first.grouped)

effect(() => {
  const choice = { search: search.value, filter: filter.value, sort: sort.value, grouped: grouped.value }
  store('sessionStorage', 'list', JSON.stringify(choice))
})
