/** Search, filters and order of the list. */
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatCount } from '../../format.ts'
import { Chips, Search } from '../../parts/controls.tsx'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { COLUMN_KEYS, FILTERS, filter, grouped, search, sort } from './choice.ts'
import { titleOf } from './columns.tsx'
import type { AppList } from './order.ts'

const text = defineStrings('toolbar', {
  search: 'Search apps',
  filter: 'Filter',
  filters: { all: 'All', crashed: 'Crashed', stopped: 'Stopped', updates: 'Updates' },
  sort: 'Sort by',
  sortBy: 'By {column}',
  group: 'By hub',
})

const SHORTCUT = '/'

export function Toolbar({ list }: { readonly list: AppList }) {
  const { store } = usePage()
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
      if (event.key !== SHORTCUT || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  const counts = list.counts.value
  return (
    <div class="toolbar">
      <Search label={text.search} value={search} field={field} shortcut={SHORTCUT} />
      <Chips label={text.filter} options={FILTERS} chosen={filter}>
        {(one) => (
          <>
            {text.filters[one]} <small>{formatCount(counts[one])}</small>
          </>
        )}
      </Chips>
      <label class="sort">
        <span class="hidden">{text.sort}</span>
        <select
          value={sort.value.by}
          onChange={({ currentTarget }) => {
            const by = COLUMN_KEYS.find((key) => key === currentTarget.value) ?? 'name'
            sort.value = { by, isReversed: false }
          }}
        >
          {COLUMN_KEYS.map((key) => (
            <option key={key} value={key}>
              {text.sortBy({ column: titleOf(key).toLocaleLowerCase() })}
            </option>
          ))}
        </select>
      </label>
      {store.own.value.length > 1 && (
        <label class="check">
          <input
            type="checkbox"
            checked={grouped.value}
            onChange={({ currentTarget }) => {
              grouped.value = currentTarget.checked
            }}
          />
          {text.group}
        </label>
      )}
    </div>
  )
}
