/** The toolbar of the list: search, order, and the update of all apps. */
import { untracked } from '@preact/signals'
import { UPDATE } from '../../actions.ts'
import { bulkRefusal, startBulk } from '../../bulk.ts'
import { Action, Search, set } from '../../parts/controls.tsx'
import { SEARCH_KEY } from '../../parts/keys.tsx'
import { COLUMN_KEYS, compact, grouped, search, sort } from '../../preferences.ts'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import type { AppList } from './order.ts'

const text = defineStrings('toolbar', {
  search: 'Search apps',
  sort: 'Sort by',
  sortBy: {
    name: 'By name',
    version: 'By version',
    state: 'By state',
    guardian: 'By guardian',
    enabled: 'By enabled',
    cpu: 'By CPU',
    memory: 'By memory',
  },
  group: 'By hub',
  compact: 'Compact',
  updateAll: 'Update all ({count})',
})

interface ToolbarProps {
  readonly list: AppList
}

export function Toolbar({ list }: ToolbarProps) {
  const { store } = usePage()
  return (
    <div class="toolbar">
      <Search label={text.search} value={search} shortcut={SEARCH_KEY} />
      <UpdateAll list={list} />
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
              {text.sortBy[key]}
            </option>
          ))}
        </select>
      </label>
      {store.own.value.length > 1 && (
        <label class="check">
          <input
            type="checkbox"
            checked={grouped.value}
            onChange={({ currentTarget }) => set(grouped, currentTarget.checked)}
          />
          {text.group}
        </label>
      )}
      <label class="check compact">
        <input
          type="checkbox"
          checked={compact.value}
          onChange={({ currentTarget }) => set(compact, currentTarget.checked)}
        />
        {text.compact}
      </label>
    </div>
  )
}

/** Not only of the apps that the list shows. */
function UpdateAll({ list }: ToolbarProps) {
  const page = usePage()
  const { updates } = list.totals.value.counts
  if (updates === 0) return null
  const all = () => page.store.own.value.flatMap(({ apps }) => [...apps.value.values()].filter(UPDATE.fits))
  return (
    <Action
      label={text.updateAll({ count: updates })}
      glyph={UPDATE.glyph}
      refused={bulkRefusal(page, UPDATE, untracked(all))}
      act={() => void startBulk(page, UPDATE, all())}
    />
  )
}
