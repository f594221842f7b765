import { type Signal, untracked } from '@preact/signals'
import { bulkRefusal, startBulk, UPDATE } from '../../actions.ts'
import type { HubEntry } from '../../live/store.ts'
import { Action, Badge, Search, Select, set } from '../../parts/controls.tsx'
import { SEARCH_KEY } from '../../parts/keys.tsx'
import { COLUMN_KEYS, compact, FILTERS, type Filter, filter, grouped, search, sort } from '../../preferences.ts'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, formatBytes, formatCount, terms } from '../../terms.ts'
import { figuresOf } from '../bridge/hub.tsx'
import type { AppList, ListProps } from './order.ts'

const text = defineStrings('overview', {
  title: 'Overview',
  filter: 'Filter',
  filters: {
    attention: 'Needs attention',
    all: 'All',
    crashed: 'Crashed',
    given_up: 'Given up',
    stopped: 'Stopped',
    updates: 'Updates',
  },
  memory: 'Memory of apps',
  of: '{part} of {total}',
  weak: 'Power supply too weak',
  throttled: 'Speed reduced',
  last: 'last known figures',
  more: { one: '{count} more hub', other: '{count} more hubs' },
  toolbar: {
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
  },
})

/** The CSS class of a count that is not 0. */
const CLASSES: Partial<Record<Filter, string>> = { attention: 'warn', crashed: 'bad', given_up: 'bad', updates: 'info' }

export function Overview({ list }: ListProps) {
  const { store } = usePage()
  const { counts } = list.totals.value
  const isAway = store.away.value.length === store.own.value.length
  return (
    <section class="overview" aria-label={text.title}>
      {counts.all > 0 && (
        <fieldset class={isAway ? 'filters away' : 'filters'}>
          <legend class="hidden">{text.filter}</legend>
          {FILTERS.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={filter.value === one}
              onClick={() => set(filter, filter.value === one ? 'all' : one)}
            >
              <span>{text.filters[one]}</span>{' '}
              <strong class={counts[one] > 0 ? (CLASSES[one] ?? 'plain') : 'none'}>{formatCount(counts[one])}</strong>
            </button>
          ))}
        </fieldset>
      )}
      <Machines list={list} />
    </section>
  )
}

/** Maximum number of hubs that are shown here; the page of the bridge shows all hubs. */
const MAX_SHOWN = 4

/** Whether a hub is not offline, and its power supply and speed are normal. Hubs with a problem are shown first. */
const isWell = ({ state, health: { value: health } }: HubEntry) =>
  state.value !== 'offline' && !health?.undervoltage && !health?.throttled

function Machines({ list }: ListProps) {
  const { store } = usePage()
  const { memory } = list.totals.value
  const known = store.own.value.filter(({ name, health }) => memory.has(name) || health.value !== undefined)
  const shown = known.toSorted((one, other) => Number(isWell(one)) - Number(isWell(other))).slice(0, MAX_SHOWN)
  const more = known.length - shown.length
  if (known.length === 0) return null
  return (
    <ul class="machines">
      {shown.map((hub) => (
        <Machine key={hub.name} hub={hub} memory={memory.get(hub.name)} />
      ))}
      {more > 0 && (
        <li>
          <a href={hrefOf({ at: 'bridge' })}>{text.more({ count: more })}</a>
        </li>
      )}
    </ul>
  )
}

function Machine({ hub, memory }: { readonly hub: HubEntry; readonly memory: number | undefined }) {
  const { store } = usePage()
  const isAway = store.isAway(hub.name)
  const health = hub.health.value
  const total = health?.memory_total_bytes
  const used = memory === undefined ? undefined : formatBytes(memory)
  const figures = [
    [text.memory, used && total ? text.of({ part: used, total: formatBytes(total) }) : used] as const,
    ...(health === undefined ? [] : figuresOf(health)),
  ]
  return (
    <li class={isAway ? 'away' : ''}>
      {store.own.value.length > 1 && (
        <a class="hub-name" href={hrefOf({ at: 'bridge' })}>
          {hub.name}
        </a>
      )}
      {isAway && (
        <>
          <Badge tone="bad">{terms.offline}</Badge> <small>{text.last}</small>
        </>
      )}
      {health?.undervoltage && <Badge tone="warn">{text.weak}</Badge>}
      {health?.throttled && <Badge tone="warn">{text.throttled}</Badge>}
      {figures
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <span key={name}>
            <small>{name}</small> <span class="value">{value}</span>
          </span>
        ))}
    </li>
  )
}

/** Opens the first app of the whole list, because that app is not rendered if the list is scrolled. */
function openFirst({ items }: AppList): void {
  const first = items.value.find((item) => item.kind === 'app')
  if (first !== undefined) location.hash = hrefOf({ at: 'app', hub: first.entry.hub, app: first.entry.id })
}

export function Toolbar({ list }: ListProps) {
  const { store } = usePage()
  return (
    <div class="toolbar">
      <Search label={text.toolbar.search} value={search} shortcut={SEARCH_KEY} open={() => openFirst(list)} />
      <UpdateAll list={list} />
      <label class="sort">
        <span class="hidden">{text.toolbar.sort}</span>
        <Select
          options={COLUMN_KEYS}
          chosen={sort.value.by}
          choose={(by) => set(sort, { by, isReversed: false })}
          nameOf={(key) => text.toolbar.sortBy[key]}
        />
      </label>
      {store.own.value.length > 1 && <Check label={text.toolbar.group} on={grouped} />}
      <Check label={text.toolbar.compact} on={compact} variant="check compact" />
    </div>
  )
}

function Check({ label, on, variant = 'check' }: { label: string; on: Signal<boolean>; variant?: string }) {
  return (
    <label class={variant}>
      <input type="checkbox" checked={on.value} onChange={({ currentTarget }) => set(on, currentTarget.checked)} />
      {label}
    </label>
  )
}

/** A button that updates all apps, not only those that the list shows. */
function UpdateAll({ list }: ListProps) {
  const page = usePage()
  const { updates } = list.totals.value.counts
  if (updates === 0) return null
  const all = () => page.store.own.value.flatMap(({ apps }) => [...apps.value.values()].filter(UPDATE.fits))
  return (
    <Action
      label={text.toolbar.updateAll({ count: updates })}
      glyph={UPDATE.glyph}
      refused={bulkRefusal(page, UPDATE, untracked(all))}
      act={() => void startBulk(page, UPDATE, all())}
    />
  )
}
