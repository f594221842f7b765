/** The overview above the list: figures that filter it, and how each hub does as a machine. */
import { formatBytes, formatCelsius, formatCount } from '../../format.ts'
import type { HubEntry } from '../../live/entries.ts'
import { Badge, set } from '../../parts/controls.tsx'
import { FILTERS, type Filter, filter } from '../../preferences.ts'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings } from '../../strings.ts'
import { terms } from '../../terms.ts'
import type { AppList } from './order.ts'

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
  load: 'Load',
  temperature: 'Temperature',
  storage: 'Storage',
  free: '{free} free of {total}',
  weak: 'Power supply too weak',
  throttled: 'Speed reduced',
  last: 'last known figures',
  more: { one: '{count} more hub', other: '{count} more hubs' },
})

/** The colour of a figure that is not 0. */
const CLASSES: Readonly<Partial<Record<Filter, string>>> = {
  attention: 'warn',
  crashed: 'bad',
  given_up: 'bad',
  updates: 'info',
}

interface ListProps {
  readonly list: AppList
}

export function Overview({ list }: ListProps) {
  const { counts } = list.totals.value
  return (
    <section class="overview" aria-label={text.title}>
      {counts.all > 0 && <Figures list={list} />}
      <Machines list={list} />
    </section>
  )
}

function Figures({ list }: ListProps) {
  const { store } = usePage()
  const { counts } = list.totals.value
  const isAway = store.away.value.length === store.own.value.length
  return (
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
  )
}

/** Hubs with figures; the page of the bridge has all of them. */
const MOST_SHOWN = 4

/** Hubs that have a problem come first. */
const isWell = ({ state, health: { value: health } }: HubEntry) =>
  state.value !== 'offline' && !health?.undervoltage && !health?.throttled

function Machines({ list }: ListProps) {
  const { store } = usePage()
  const { memory } = list.totals.value
  const known = store.own.value.filter(({ name, health }) => memory.has(name) || health.value !== undefined)
  const shown = known.toSorted((one, other) => Number(isWell(one)) - Number(isWell(other))).slice(0, MOST_SHOWN)
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
  const figures: readonly (readonly [name: string, value: string | undefined])[] = [
    [text.memory, used && total ? text.of({ part: used, total: formatBytes(total) }) : used],
    [text.load, known(health?.load_1m, formatCount)],
    [text.temperature, known(health?.temperature_celsius, formatCelsius)],
    [text.storage, free(health?.storage_free_bytes, health?.storage_total_bytes)],
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

function known(value: number | null | undefined, format: (value: number) => string): string | undefined {
  return value === null || value === undefined ? undefined : format(value)
}

function free(bytes: number | null | undefined, total: number | null | undefined): string | undefined {
  if (bytes == null || total == null) return undefined
  return text.free({ free: formatBytes(bytes), total: formatBytes(total) })
}
