import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { UsageHistory } from '../../../../../contract/crash.ts'
import { api } from '../../api.ts'
import type { Entry } from '../../live/activity.ts'
import { poll } from '../../live/poll.ts'
import { type AppEntry, readTopic } from '../../live/store.ts'
import { Chart, type Charted, described, type Figure, FORMAT, GLYPHS, type Mark } from '../../parts/chart.tsx'
import { Card, Chips } from '../../parts/controls.tsx'
import { Glyph } from '../../parts/icons.tsx'
import type { AppProps } from '../../parts/state.tsx'
import { usePage } from '../../session.ts'
import { defineStrings, formatTime, NONE, terms } from '../../terms.ts'

const text = defineStrings('usage', {
  title: 'Usage',
  range: 'Period',
  ranges: { 1: '1 h', 24: '24 h', 168: '7 d' },
  over: { 1: 'last hour', 24: 'last 24 hours', 168: 'last 7 days' },
  label: '{name}, {over}',
  summary: 'Lowest {low}, mean {mean}, highest {high}, latest {last}',
  none: 'No figures yet.',
  notRunning: 'The app is not running.',
  recorded: 'Recorded by {source}.',
  recordedSince: 'Recorded by {source} since {time}.',
  sources: { bridge: 'hub2mqtt', hub: 'the hub' },
  minute: 'One point a minute: mean CPU, highest memory.',
  minutes: 'One point every {count} minutes: mean CPU, highest memory.',
  marks: {
    crash: { one: '{count} crash', other: '{count} crashes' },
    restart: { one: '{count} restart', other: '{count} restarts' },
    update: { one: '{count} update', other: '{count} updates' },
  },
})

const FIGURES = ['cpu', 'memory'] as const
const KINDS = ['crash', 'restart', 'update'] as const
const TONES = { crash: 'bad', restart: 'info', update: 'ok' } as const
const RANGES = ['1', '24', '168'] as const
const REFRESH_MS = 60_000
/** The minimum period that a chart covers, because a shorter period would show only noise. */
export const SHORTEST_SECONDS = 15 * 60

/** A received usage history. `at` is the time when it arrived, in epoch seconds. */
interface Answered {
  readonly hours: (typeof RANGES)[number]
  readonly at: number
  readonly history: UsageHistory
  readonly points: Charted['points']
}

export function Usage({ entry }: AppProps) {
  const { store } = usePage()
  const range = useSignal<(typeof RANGES)[number]>('24')
  const { answered, failure } = useHistory(entry, range.value)
  // Redraw the charts only if a mark has changed, because most events are about other apps.
  const marked = useComputed(() => String(marksOf(entry, store.recent.value).map(({ at }) => at))).value
  const charted = useMemo(
    () => answered && chartedOf(answered, marksOf(entry, store.recent.peek())),
    [answered, marked],
  )
  const chips = <Chips label={text.range} options={RANGES} names={text.ranges} chosen={range} />
  const { cpu_percent: cpu, memory_bytes: memory, state } = entry.app.value
  return (
    <Card title={text.title} aside={chips}>
      {failure !== undefined && (
        <p class="bad-text" role="status">
          {failure}
        </p>
      )}
      {answered === undefined || charted === undefined ? (
        failure === undefined && <p class="empty small">{terms.loading}</p>
      ) : charted.points.times.length === 0 ? (
        <p class="empty small">
          {text.none} {state !== 'running' && text.notRunning}
        </p>
      ) : (
        <>
          <Figures charted={charted} over={text.over[answered.hours]} now={{ cpu, memory }} />
          <p class="quiet">
            <small>{noteOn(answered)}</small>
          </p>
        </>
      )}
    </Card>
  )
}

/** Polls the usage history of an app while the page is visible and connected. */
function useHistory({ hub, id }: AppEntry, hours: Answered['hours']) {
  const { channel } = usePage()
  const answered = useSignal<Answered | undefined>(undefined)
  const failure = useSignal<string | undefined>(undefined)
  const isLive = channel.liveness.value === 'live'
  useEffect(() => {
    if (!isLive) return
    const reading = poll(REFRESH_MS, async (hasEnded) => {
      const result = await api.history(hub, id, Number(hours))
      if (hasEnded()) return
      failure.value = result.ok ? undefined : result.message
      if (!result.ok) return
      const { value: history } = result
      answered.value = { hours, at: Date.now() / 1000, history, points: pointsOf(history) }
    })
    return reading.end
  }, [hub, id, hours, isLive])
  return { answered: answered.value, failure: failure.value }
}

/** Returns a point for every period from the first to the last known period. Unknown periods become gaps. */
function pointsOf({ resolution_seconds: step, cpu_percent, memory_bytes }: UsageHistory): Charted['points'] {
  const [cpu, memory] = [new Map(cpu_percent), new Map(memory_bytes)]
  const all = [...cpu.keys(), ...memory.keys()]
  const first = Math.min(...all)
  const length = all.length === 0 ? 0 : Math.round((Math.max(...all) - first) / step) + 1
  const times = Array.from({ length }, (_, i) => first + i * step)
  const along = (figures: ReadonlyMap<number, number>) => times.map((at) => figures.get(at) ?? null)
  return { times, cpu: along(cpu), memory: along(memory) }
}

/** Returns the data of the charts, for the whole period or only for the part with known values. */
function chartedOf({ hours, at, points }: Answered, marks: readonly Mark[]): Charted {
  const recent = marks.flatMap((mark) => (mark.at < at + REFRESH_MS / 1000 ? mark.at : []))
  const to = Math.max(at, points.times.at(-1) ?? 0, ...recent)
  const from = Math.max(to - Number(hours) * 3600, Math.min(points.times[0] ?? to, to - SHORTEST_SECONDS))
  return { points, marks: marks.filter((mark) => mark.at >= from), from, to }
}

function noteOn({ hours, at, history, points }: Answered): string {
  const source = text.sources[history.source]
  const [first = 0] = points.times
  const isWhole = at - first >= Number(hours) * 3600 - 2 * history.resolution_seconds
  const recorded = isWhole ? text.recorded({ source }) : text.recordedSince({ source, time: formatTime(first * 1000) })
  const count = history.resolution_seconds / 60
  return `${recorded} ${count === 1 ? text.minute : text.minutes({ count })}`
}

/** Maximum time between two reports of the same event, in seconds. */
const SAME_SECONDS = 30
/** Finds the kind of a mark by the type of an event, such as `crashed`, or of an entry in the history, such as `crash`. */
const kindOf = (what: string) => KINDS.find((kind) => [kind, `${kind}d`, `${kind}ed`].includes(what))

/** Returns the marks of the charts, from the guardian's history, the latest crash and the latest events. */
function marksOf(entry: AppEntry, recent: readonly Entry[]): Mark[] {
  const crash = readTopic(entry, 'crash')
  const isOwn = ({ app }: { readonly app: string | null }) => app === entry.id
  const ofCommand = (name: string | null) => (name === 'restart' ? name : '')
  const reports = [
    ...(readTopic(entry, 'history') ?? []),
    ...(crash === undefined ? [] : [{ at: crash.at, what: 'crash' }]),
    ...(crash?.before.filter(isOwn) ?? []).map(({ at, what, to }) => ({
      at,
      what: what === 'command' ? ofCommand(to) : what,
    })),
    ...recent
      .filter((one) => isOwn(one) && one.hub === entry.hub)
      .map((one) => ({
        at: one.at,
        what: one.kind === 'event' ? one.event.event_type : ofCommand(one.answer.ok ? one.answer.command : null),
      })),
  ]
  const marks: Mark[] = []
  for (const { at: when, what } of reports) {
    const at = Math.round(new Date(when).getTime() / 1000)
    const kind = kindOf(what)
    const isKnown = marks.some((mark) => mark.kind === kind && Math.abs(mark.at - at) < SAME_SECONDS)
    if (kind !== undefined && !isKnown) marks.push({ at, kind })
  }
  return marks
}

/**
 * The charts of CPU and memory, which share the pointer and the marks. @param props.over the period shown, in words
 * @param props.now the current values; default: the latest values in the charts
 */
export function Figures(props: { charted: Charted; over: string; now?: Readonly<Record<Figure, number | null>> }) {
  const { charted, over, now } = props
  const hovered = useSignal<number | undefined>(undefined)
  const { points, marks } = charted
  const at = hovered.value === undefined ? -1 : points.times.indexOf(hovered.value)
  return (
    <>
      <div class="figures">
        {FIGURES.map((figure) => {
          const values = points[figure].filter((value) => value !== null)
          const summary = summaryOf(figure, values)
          const value = now?.[figure] ?? (now === undefined ? values.at(-1) : undefined)
          return (
            <div key={figure} class="usage">
              <h3>
                {terms.columns[figure]} <strong>{value == null ? NONE : FORMAT[figure](value)}</strong>
                <span class="reading">{at === -1 ? '' : described(charted, figure, at)}</span>
              </h3>
              <Chart
                figure={figure}
                label={text.label({ name: terms.columns[figure], over })}
                summary={summary}
                charted={charted}
                hovered={hovered}
              />
              <small>{summary}</small>
            </div>
          )
        })}
      </div>
      <p class="marks">
        {KINDS.map((kind) => {
          const count = marks.filter((mark) => mark.kind === kind).length
          return (
            count > 0 && (
              <span key={kind} class={TONES[kind]}>
                <Glyph name={GLYPHS[kind]} size={14} /> {text.marks[kind]({ count })}
              </span>
            )
          )
        })}
      </p>
    </>
  )
}

function summaryOf(figure: Figure, values: readonly number[]): string {
  if (values.length === 0) return text.none
  const format = FORMAT[figure]
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return text.summary({
    low: format(Math.min(...values)),
    mean: format(mean),
    high: format(Math.max(...values)),
    last: format(values.at(-1) ?? 0),
  })
}
