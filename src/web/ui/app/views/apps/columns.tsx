import { computed, signal, useComputed } from '@preact/signals'
import type { ComponentType } from 'preact'
import { isCrashed } from '../../../../../contract/classify.ts'
import type { App } from '../../../../../hub/app.ts'
import type { Sample } from '../../../../server/api/protocol.ts'
import { runAction } from '../../actions.ts'
import { commandName } from '../../commands.ts'
import { type AppEntry, KEPT_USAGE_MS } from '../../live/store.ts'
import { type Figure, FORMAT } from '../../parts/chart.tsx'
import { set } from '../../parts/controls.tsx'
import { AppIcon } from '../../parts/icons.tsx'
import {
  type AppProps,
  CommandSwitch,
  GuardCell,
  GuardMark,
  guardOrder,
  lastState,
  nextOf,
  StateBadge,
  troubleOf,
  UpdateBadge,
} from '../../parts/state.tsx'
import { COLUMN_KEYS, type ColumnKey, grouped } from '../../preferences.ts'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { defineStrings, NONE, terms } from '../../terms.ts'

const text = defineStrings('columns', { enabledOf: '{name} enabled', running: '{command}…' })

/** A column of the list of apps. `COLUMN_KEYS` contains the keys of the columns in their order. */
interface Column {
  readonly value: (app: App, entry: AppEntry) => string | number
  /** Set if the first sort of this column puts the greatest value first, because users look for high values. */
  readonly isDescending?: true
  readonly cell: ComponentType<AppProps>
  /** Width in pixels on a wide and on a narrow screen; if missing, the column takes the remaining width. */
  readonly width?: readonly [wide: number, narrow: number]
}

const FIELDS = { cpu: 'cpu_percent', memory: 'memory_bytes' } as const
/** State of an app → sort position. The worst state is first. */
const STATE_ORDER: Readonly<Record<string, number>> = { crashed: 0, stopping: 1, starting: 2, stopped: 3, running: 4 }

export const COLUMNS: Readonly<Record<ColumnKey, Column>> = {
  name: { value: ({ name, id }) => name ?? id, cell: Name },
  version: { value: ({ version }) => version ?? '', cell: Version, width: [144, 116] },
  state: { value: (app) => (isCrashed(app) ? 0 : (STATE_ORDER[app.state ?? ''] ?? 5)), cell: State, width: [210, 156] },
  guardian: { value: (_, entry) => guardOrder(entry), cell: GuardCell, width: [132, 132] },
  enabled: { value: ({ enabled }) => Number(enabled), isDescending: true, cell: Enabled, width: [84, 80] },
  cpu: usage('cpu', [152, 72]),
  memory: usage('memory', [152, 84]),
}

const wide = matchMedia('(min-width: 1360px)')
/** Whether there is space for the guardian's column. Without it, the state column shows the guardian's mark. */
const hasGuardian = signal(wide.matches)
wide.addEventListener('change', () => set(hasGuardian, wide.matches))

export const shownColumns = computed(() => COLUMN_KEYS.filter((key) => key !== 'guardian' || hasGuardian.value))

function Name({ entry }: AppProps) {
  const name = entry.name.value
  return (
    <>
      <AppIcon entry={entry} name={name} />
      <a href={hrefOf({ at: 'app', hub: entry.hub, app: entry.id })} title={name}>
        {name}
      </a>
      <Below entry={entry} />
    </>
  )
}

/** Shows the progress or result of a command. Without one, shows the app's id and, unless apps are grouped, its hub. */
function Below({ entry }: AppProps) {
  const isOneOfMany = usePage().store.own.value.length > 1
  const running = entry.running.value
  const outcome = entry.outcome.value
  if (running !== undefined) {
    return (
      <small>
        <span class="spinner" aria-hidden="true" /> {text.running({ command: commandName(running) })}
      </small>
    )
  }
  if (outcome === undefined)
    return <small>{isOneOfMany && !grouped.value ? `${entry.hub} · ${entry.id}` : entry.id}</small>
  return (
    <small class={outcome.ok ? 'ok-text' : 'bad-text'} title={outcome.text}>
      {outcome.text}
    </small>
  )
}

function Version({ entry }: AppProps) {
  const app = entry.app.value
  return (
    <>
      <span title={app.version ?? undefined}>{app.version ?? terms.unknown}</span>
      <UpdateBadge app={app} />
    </>
  )
}

function State({ entry }: AppProps) {
  const { store } = usePage()
  const app = entry.app.value
  const isAway = useComputed(() => store.isAway(entry.hub)).value
  const trouble = useComputed(() => troubleOf(entry, store)).value
  const next = useComputed(() => (hasGuardian.value || !isCrashed(entry.app.value) ? undefined : nextOf(entry))).value
  const message = isCrashed(app) && app.crash_message
  const problems = trouble ? [terms.events[trouble], message, next] : [next, message]
  const label = isAway ? lastState(app) : problems.filter((problem) => problem).join(': ')
  return (
    <>
      <span class="line">
        {!hasGuardian.value && <GuardMark entry={entry} />}
        <StateBadge entry={entry} store={store} />
      </span>
      {label && (
        <small class={isAway ? 'message' : 'message bad-text'} title={label}>
          {label}
        </small>
      )}
    </>
  )
}

function Enabled({ entry }: AppProps) {
  const on = useComputed(() => entry.app.value.enabled === true).value
  const command = on ? 'disable' : 'enable'
  const label = text.enabledOf({ name: entry.name.value })
  return <CommandSwitch on={on} {...{ entry, command, label }} act={() => runAction(entry, command)} />
}

function usage(figure: Figure, width: Column['width'] & object): Column {
  const field = FIELDS[figure]
  const cell = ({ entry }: AppProps) => {
    const now = entry.app.value[field]
    if (now === null) return <span class="figure quiet">{NONE}</span>
    return (
      <>
        <span class="figure">{FORMAT[figure](now)}</span>
        <Spark samples={entry.samples} figure={figure} />
      </>
    )
  }
  return { value: (app) => app[field] ?? -1, isDescending: true, cell, width }
}

/** The index of each value in a sample. */
const PLACES = { cpu: 1, memory: 2 } as const
/** Number of points of a line; more points would not be visible. */
const STEPS = 60
const WIDTH = 64
const HEIGHT = 22
const VIEW = `0 0 ${WIDTH} ${HEIGHT}`

/** A small chart of the usage, hidden from screen readers, because the value is shown beside it. */
function Spark({ samples, figure }: { readonly samples: readonly Sample[]; readonly figure: Figure }) {
  const { line, area } = pathOf(samples, figure)
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={VIEW} preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={area} />
      <path class="line" d={line} />
    </svg>
  )
}

/** The minimum time that the whole width of the line represents. */
const SHORTEST_MS = 2 * 60_000

/** Returns the line and the area of a chart. Each step shows its last sample, or else the previous value. */
function pathOf(samples: readonly Sample[], figure: Figure) {
  const end = samples.at(-1)?.[0] ?? 0
  const length = Math.min(KEPT_USAGE_MS, Math.max(SHORTEST_MS, end - (samples[0]?.[0] ?? end)))
  const start = end - length
  const values: (number | null)[] = Array.from({ length: STEPS + 1 }, () => null)
  for (const sample of samples) {
    const step = Math.min(STEPS, Math.max(0, Math.ceil(((sample[0] - start) / length) * STEPS)))
    values[step] = sample[PLACES[figure]]
  }
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return { line: '', area: '' }
  const top = Math.max(...known) * 1.15
  // Memory changes little, so the line would be flat on a scale from zero.
  const low = figure === 'memory' ? Math.min(...known) * 0.85 : 0
  const span = top - low || 1
  const first = values.findIndex((value) => value !== null)
  let y = 0
  const points = values.slice(first).map((value, i) => {
    if (value !== null) y = HEIGHT - 1.5 - ((value - low) / span) * (HEIGHT - 3)
    return { x: ((first + i) / STEPS) * WIDTH, y }
  })
  // Draw a line even for a single sample.
  if (points.length === 1) points.unshift({ x: 0, y })
  const line = `M${points.map((point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join('L')}`
  return { line, area: `${line}V${HEIGHT}H${points[0]?.x}Z` }
}
