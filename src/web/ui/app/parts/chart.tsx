/** A chart of an app's usage. Users select a point in it with the pointer or the arrow keys. */
import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type Plot from 'uplot'
import { theme } from '../preferences.ts'
import { defineStrings, formatBytes, formatMoment, formatPercent, formatTick, locale } from '../terms.ts'
import { set } from './controls.tsx'
import { PATHS } from './icons.tsx'

export type Figure = 'cpu' | 'memory'

/** An event that charts mark. `at` is in epoch seconds. */
export type Mark = { readonly at: number; readonly kind: 'crash' | 'restart' | 'update' }

/** The data of one or more charts, with times in epoch seconds. */
export interface Charted {
  /** The points, oldest first. A value is `null` if the app was stopped, or if the value is unknown. */
  readonly points: {
    readonly times: readonly number[]
    readonly cpu: readonly (number | null)[]
    readonly memory: readonly (number | null)[]
  }
  readonly marks: readonly Mark[]
  readonly from: number
  readonly to: number
}

const text = defineStrings('chart', {
  noFigure: 'no figure',
  failed: 'The chart could not be loaded.',
  at: '{time}: {value}',
  marks: { crash: 'crash', restart: 'restart', update: 'update' },
})

export const FORMAT = { cpu: formatPercent, memory: formatBytes } as const
export const GLYPHS = { crash: 'alert', restart: 'restart', update: 'update' } as const
const COLOURS = { cpu: '--accent', memory: '--accent', crash: '--bad', restart: '--accent', update: '--ok' } as const

const HEIGHT = 168
/** Space for the marks above the lines, in pixels. */
const TOP = 20
const AXIS_WIDTH = 68
/** The number of points by which each key moves the pointer. */
const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageDown: -10,
  PageUp: 10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
}

const dark = matchMedia('(prefers-color-scheme: dark)')
const isDark = signal(dark.matches)
dark.addEventListener('change', () => set(isDark, dark.matches))

/** The chart library; `undefined` before it is loaded, and `null` if loading has failed. */
const library = signal<typeof Plot | undefined | null>(undefined)

async function load(): Promise<void> {
  const loaded = await import('uplot').catch(() => null)
  library.value = loaded === null ? null : loaded.default
}

interface ChartProps {
  readonly figure: Figure
  readonly label: string
  /** A text version of the chart, for screen readers while no point is selected. */
  readonly summary: string
  readonly charted: Charted
  /** The selected time, which several charts can share. */
  readonly hovered: Signal<number | undefined>
}

export function Chart({ figure, label, summary, charted, hovered }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null)
  const { times } = charted.points
  const chosen = hovered.value === undefined ? -1 : times.indexOf(hovered.value)
  const last = times.length - 1
  useEffect(() => void load(), [charted])
  // The last three dependencies determine colours and formats.
  useEffect(() => {
    if (!library.value || holder.current === null) return
    return draw(library.value, holder.current, { figure, charted, hovered })
  }, [library.value, charted, theme.value, locale.value, isDark.value])
  return (
    <>
      <div
        ref={holder}
        class="chart"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={chosen === -1 ? last : chosen}
        aria-valuetext={chosen === -1 ? summary : described(charted, figure, chosen)}
        aria-readonly
        onKeyDown={(event) => {
          const step = STEPS[event.key]
          if (step === undefined) return
          event.preventDefault()
          hovered.value = times[Math.max(0, Math.min(last, (chosen === -1 ? times.length : chosen) + step))]
        }}
        onBlur={() => set(hovered, undefined)}
      />
      {library.value === null && <p class="bad-text">{text.failed}</p>}
    </>
  )
}

/** Describes a point in words for screen readers: its time, its value and its marks. */
export function described({ points, marks }: Charted, figure: Figure, index: number): string {
  const { times } = points
  const [at = 0, value = null] = [times[index], points[figure][index]]
  const shown = value === null ? text.noFigure : FORMAT[figure](value)
  // A mark belongs to the last point at or before its time, or else to the first point.
  const indexOf = ({ at }: Mark) =>
    Math.max(
      0,
      times.findLastIndex((time) => time <= at),
    )
  const here = marks.filter((mark) => indexOf(mark) === index).map(({ kind }) => text.marks[kind])
  return [text.at({ time: formatMoment(at * 1000), value: shown }), ...new Set(here)].join(', ')
}

/** Moves the pointer line to a time, or hides the line if `at` is `undefined`. */
function point(plot: Plot, at: number | undefined): void {
  const { idx, left = -1 } = plot.cursor
  const [times] = plot.data
  if (at === undefined) {
    if (left >= 0) plot.setCursor({ left: -10, top: -10 }, false)
  } else if (idx == null || times[idx] !== at) plot.setCursor({ left: plot.valToPos(at, 'x'), top: 0 }, false)
}

type Drawn = Pick<ChartProps, 'figure' | 'charted' | 'hovered'>

/** Draws a chart. Returns a function that removes it. */
function draw(library: typeof Plot, holder: HTMLDivElement, { figure, charted, hovered }: Drawn): () => void {
  const { points, marks, from, to } = charted
  const current = hovered.peek()
  const made = new library(
    {
      width: Math.max(1, holder.clientWidth),
      height: HEIGHT,
      padding: [TOP, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: { x: { range: () => [from, to] }, y: { range: RANGES[figure] } },
      axes: [
        axis({ values: (_, ticks, __, ___, step) => ticks.map((at) => formatTick(at, step)), size: 32, space: 72 }),
        axis({ values: (_, ticks) => ticks.map(FORMAT[figure]), size: AXIS_WIDTH, space: 44 }),
      ],
      series: [{}, line(COLOURS[figure])],
      hooks: {
        setCursor: [({ cursor: { idx }, data: [times] }) => set(hovered, idx == null ? undefined : times[idx])],
        draw: [(drawn) => drawMarks(drawn, marks)],
      },
    },
    [[...points.times], [...points[figure]]],
    holder,
  )
  // Draw now, because drawing resets the pointer, which the next line restores.
  made.batch(() => {})
  hovered.value = current !== undefined && points.times.includes(current) ? current : undefined
  const observer = new ResizeObserver(() => {
    const before = hovered.peek()
    made.batch(() => made.setSize({ width: Math.max(1, holder.clientWidth), height: HEIGHT }))
    hovered.value = before
    point(made, before)
  })
  observer.observe(holder)
  const unsubscribe = hovered.subscribe((at) => point(made, at))
  return () => {
    observer.disconnect()
    unsubscribe()
    made.destroy()
  }
}

/** The CPU axis starts at zero. Memory changes little, so its axis covers only the range of the values. */
const RANGES: Readonly<Record<Figure, (plot: Plot, low: number, high: number) => [number, number]>> = {
  cpu: (_, __, high) => [0, Math.max(1, (high ?? 0) * 1.1)],
  memory: (_, low, high) => {
    const room = Math.max(((high ?? 0) - (low ?? 0)) * 0.15, (high ?? 0) * 0.1, 1e6)
    return [Math.max(0, (low ?? 0) - room), (high ?? 0) + room]
  },
}

/** Resolves a CSS variable, because a canvas accepts only colours. */
function colour({ root }: Plot, name: string): string {
  root.style.color = `var(${name})`
  return getComputedStyle(root).color
}

function axis(more: Plot.Axis): Plot.Axis {
  const stroke = (plot: Plot) => colour(plot, '--quiet')
  const grid = { stroke: (plot: Plot) => colour(plot, '--line'), width: 1 }
  return { stroke, grid, ticks: { ...grid, size: 4 }, font: '12px system-ui, sans-serif', ...more }
}

function line(name: string): Plot.Series {
  const stroke = (plot: Plot) => colour(plot, name)
  /** Returns the points without a neighbour. They are drawn as dots, because the line does not show them. */
  const alone = ({ data }: Plot, series: number) =>
    [...(data[series] ?? []).keys()].filter((i) => {
      const [before, value, after] = [data[series]?.[i - 1], data[series]?.[i], data[series]?.[i + 1]]
      return value != null && before == null && after == null
    })
  return { stroke, width: 1.5, points: { show: false, filter: alone, size: 6, stroke, fill: stroke } }
}

/** Draws each mark as a vertical line with a glyph, so that colour is not the only difference between their kinds. */
function drawMarks(plot: Plot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot
  const { min = 0, max = 0 } = plot.scales['x'] ?? {}
  const ratio = devicePixelRatio
  for (const { at, kind } of marks) {
    if (at < min || at > max) continue
    const x = plot.valToPos(at, 'x', true)
    ctx.save()
    ctx.strokeStyle = colour(plot, COLOURS[kind])
    ctx.lineWidth = ratio
    ctx.setLineDash([3 * ratio, 3 * ratio])
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    ctx.setLineDash([])
    ctx.translate(x - 7 * ratio, bbox.top - 18 * ratio)
    ctx.scale((14 * ratio) / 24, (14 * ratio) / 24)
    ctx.lineWidth = 2
    ctx.stroke(new Path2D(PATHS[GLYPHS[kind]]))
    ctx.restore()
  }
}
