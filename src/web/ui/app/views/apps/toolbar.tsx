/** The toolbar of the list: search, filters, order, and actions on the selected apps, one after another. */

import { signal } from '@preact/signals'
import { bulk, commandName, refusal, restartAll, stopBulk } from '../../commands.ts'
import { formatCount } from '../../format.ts'
import type { AppEntry } from '../../live/entries.ts'
import { Action, Chips, Search, set } from '../../parts/controls.tsx'
import { SEARCH_KEY } from '../../parts/keys.tsx'
import { confirm } from '../../parts/overlays.tsx'
import { COLUMN_KEYS, compact, FILTERS, filter, grouped, search, sort } from '../../preferences.ts'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'
import { titleOf } from './columns.tsx'
import type { AppList, Item } from './order.ts'

const text = defineStrings('toolbar', {
  search: 'Search apps',
  filter: 'Filter',
  filters: { all: 'All', crashed: 'Crashed', stopped: 'Stopped', updates: 'Updates' },
  sort: 'Sort by',
  sortBy: 'By {column}',
  group: 'By hub',
  compact: 'Compact',
  title: 'Selected apps',
  selected: '{count} selected',
  all: 'Select all {count}',
  clear: 'Clear',
  close: 'Close',
  question: { one: 'Restart {count} app?', other: 'Restart {count} apps?' },
  how: 'One after the other. It stops at the first that fails.',
  progress: '{done} of {all}',
  states: {
    running: 'Restarting {name}…',
    stopping: 'Stops after {name}',
    stopped: 'Stopped as you asked',
    failed: 'Stopped: {name} failed',
    done: 'All restarted',
  },
})

export function Toolbar({ list }: { readonly list: AppList }) {
  const { store } = usePage()
  const counts = list.counts.value
  return (
    <div class="toolbar">
      <Search label={text.search} value={search} shortcut={SEARCH_KEY} />
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
      <label class="check compact">
        <input
          type="checkbox"
          checked={compact.value}
          onChange={({ currentTarget }) => set(compact, currentTarget.checked)}
        />
        {text.compact}
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
    </div>
  )
}

const NOTHING: ReadonlySet<string> = new Set()
/** The topics of the selected apps. */
export const selected = signal(NOTHING)

export function toggleSelected(topic: string): void {
  selected.value = selected.value.symmetricDifference(new Set([topic]))
}

export function BulkBar({ items }: { readonly items: readonly Item[] }) {
  const page = usePage()
  if (bulk.value !== undefined) return <Progress />
  const chosen = selected.value
  if (chosen.size === 0) return null
  const all = page.store.hubs.value.flatMap(({ apps }) => [...apps.value.values()])
  // In the order of the list; apps hidden by a filter come last.
  const shown = items.flatMap((item) => (item.kind === 'app' ? [item.entry] : []))
  const entries = [...new Set([...shown, ...all])].filter(({ topic }) => chosen.has(topic))
  const topics = new Set(shown.map(({ topic }) => topic))
  return (
    <section class="bulk" aria-label={text.title}>
      <strong>{text.selected({ count: entries.length })}</strong>
      <Action
        label={commandName('restart')}
        glyph="restart"
        tone="primary"
        refused={entries
          .map(({ hub, id }) => refusal(page, { hub, app: id }, 'restart'))
          .find((why) => why !== undefined)}
        act={() => void restart(entries)}
      />
      {!topics.isSubsetOf(chosen) && (
        <Action label={text.all({ count: shown.length })} act={() => set(selected, chosen.union(topics))} />
      )}
      <Action label={text.clear} act={() => set(selected, NOTHING)} />
    </section>
  )
}

async function restart(entries: readonly AppEntry[]): Promise<void> {
  const question = { title: text.question({ count: entries.length }), text: text.how, action: commandName('restart') }
  if (entries.length > 1 && (await confirm(question)) === undefined) return
  selected.value = NOTHING
  await restartAll(entries)
}

function Progress() {
  if (bulk.value === undefined) return null
  const { all, done, state } = bulk.value
  const current = all[done]
  const name = current === undefined ? '' : current.name.value
  const progress = text.progress({ done, all: all.length })
  const now = text.states[state]
  return (
    <section class="bulk" aria-label={text.title} aria-live="polite">
      <progress max={all.length} value={done} aria-label={progress} />
      <strong>{progress}</strong>
      <span class={state === 'failed' ? 'bad-text' : ''}>{typeof now === 'string' ? now : now({ name })}</span>
      {state === 'running' || state === 'stopping' ? (
        <button type="button" disabled={state === 'stopping'} onClick={stopBulk}>
          {terms.cancel}
        </button>
      ) : (
        <Action label={text.close} act={() => set(bulk, undefined)} />
      )}
    </section>
  )
}
