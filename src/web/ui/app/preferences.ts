import { effect, signal } from '@preact/signals'
import * as v from 'valibot'
import { readJson } from '../../../base/read-json.ts'

type Place = 'localStorage' | 'sessionStorage'

/** Returns a stored value; `null` if there is none or the browser does not allow storage. */
export function stored(place: Place, key: string): string | null {
  try {
    return globalThis[place].getItem(`hub2mqtt.${key}`)
  } catch {
    return null
  }
}

export function store(place: Place, key: string, value: string): void {
  try {
    globalThis[place].setItem(`hub2mqtt.${key}`, value)
  } catch {
    // The browser does not allow storage, so the choice is lost when the page is closed.
  }
}

const THEMES = ['auto', 'light', 'dark'] as const

const storedTheme = stored('localStorage', 'theme')
export const theme = signal(THEMES.find((one) => one === storedTheme) ?? 'auto')

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  for (const [i, one] of (['light', 'dark'] as const).entries()) {
    const media = theme.value === 'auto' ? `(prefers-color-scheme: ${one})` : theme.value === one ? 'all' : 'not all'
    document.querySelectorAll('meta[name=theme-color]')[i]?.setAttribute('media', media)
  }
  store('localStorage', 'theme', theme.value)
})

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'auto'
}

/** Whether the list shows each app on only one line. */
export const compact = signal(stored('localStorage', 'rows') === 'compact')

effect(() => {
  document.documentElement.dataset['rows'] = compact.value ? 'compact' : 'full'
  store('localStorage', 'rows', compact.value ? 'compact' : 'full')
})

export const FILTERS = ['attention', 'all', 'crashed', 'given_up', 'stopped', 'updates'] as const
export type Filter = (typeof FILTERS)[number]
export const COLUMN_KEYS = ['name', 'version', 'state', 'guardian', 'enabled', 'cpu', 'memory'] as const
export type ColumnKey = (typeof COLUMN_KEYS)[number]

const SORT = v.object({ by: v.picklist(COLUMN_KEYS), isReversed: v.boolean() })
const CHOICE = v.object({
  search: v.optional(v.string(), ''),
  filter: v.optional(v.picklist(FILTERS), 'all'),
  sort: v.optional(SORT, { by: 'name', isReversed: false }),
  grouped: v.optional(v.boolean(), true),
})

const first = readJson(CHOICE, stored('sessionStorage', 'list') ?? '') ?? v.parse(CHOICE, {})
export const search = signal(first.search)
export const filter = signal(first.filter)
export const sort = signal(first.sort)
/** Whether apps are grouped by hub, if there are several hubs. */
export const grouped = signal(first.grouped)

effect(() => {
  const choice = { search: search.value, filter: filter.value, sort: sort.value, grouped: grouped.value }
  store('sessionStorage', 'list', JSON.stringify(choice))
})
