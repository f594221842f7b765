/** Search, filters and order of the list. */
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatCount } from '../../format.ts'
import type { Store } from '../../live/store.ts'
import { Glyph } from '../../parts/glyph.tsx'
import { S } from '../../strings.ts'
import { type AppList, FILTERS, filter, grouped, SORTS, search, sort } from './order.ts'

export function Toolbar({ list, store }: { readonly list: AppList; readonly store: Store }) {
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  const counts = list.counts.value
  return (
    <div class="toolbar">
      <label class="search">
        <Glyph name="search" size={16} />
        <span class="hidden">{S.apps.search}</span>
        <input
          ref={field}
          type="search"
          placeholder={S.apps.search}
          value={search.value}
          onInput={({ currentTarget }) => {
            search.value = currentTarget.value
          }}
          onKeyDown={({ key, currentTarget }) => {
            if (key !== 'Escape') return
            search.value = ''
            currentTarget.blur()
          }}
        />
        <span class="key" aria-hidden="true">
          /
        </span>
      </label>
      <fieldset class="chips">
        <legend class="hidden">{S.apps.filter}</legend>
        {FILTERS.map((one) => (
          <button
            key={one}
            type="button"
            class={`chip ${one}`}
            aria-pressed={filter.value === one}
            onClick={() => {
              filter.value = one
            }}
          >
            {S.apps.filters[one]} <span class="count">{formatCount(counts[one])}</span>
          </button>
        ))}
      </fieldset>
      <label class="sort">
        <span class="hidden">{S.apps.sort}</span>
        <select
          value={sort.value.by}
          onChange={({ currentTarget }) => {
            const by = SORTS.find((one) => one === currentTarget.value) ?? 'name'
            sort.value = { by, down: false }
          }}
        >
          {SORTS.map((by) => (
            <option key={by} value={by}>
              {S.apps.sortBy(S.apps.columns[by])}
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
          {S.apps.group}
        </label>
      )}
    </div>
  )
}
