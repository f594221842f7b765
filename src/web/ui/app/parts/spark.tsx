/** The last 15 minutes as a line. */
import type { Sample } from '../../../server/api/protocol.ts'
import { KEPT_USAGE_MS } from '../live/entries.ts'
import type { Figure } from './chart.tsx'

const COLUMN = { cpu: 1, memory: 2 } as const
/** Points of a line; more would not be visible. */
const STEPS = 60
const WIDTH = 64
const HEIGHT = 22
const VIEW = `0 0 ${WIDTH} ${HEIGHT}`

/** Hidden from screen readers: the figure is beside it. */
export function Spark({ samples, figure }: { readonly samples: readonly Sample[]; readonly figure: Figure }) {
  const { line, area } = pathOf(samples, figure)
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={VIEW} preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={area} />
      <path class="line" d={line} />
    </svg>
  )
}

/** Data that covers at least this time fills the whole width. */
const SHORTEST_MS = 2 * 60_000

/** The last sample of each step; a step without a sample keeps the previous one. */
function pathOf(samples: readonly Sample[], figure: Figure) {
  const end = samples.at(-1)?.[0] ?? 0
  const length = Math.min(KEPT_USAGE_MS, Math.max(SHORTEST_MS, end - (samples[0]?.[0] ?? end)))
  const start = end - length
  const values: (number | null)[] = Array.from({ length: STEPS + 1 }, () => null)
  for (const sample of samples) {
    const step = Math.min(STEPS, Math.max(0, Math.ceil(((sample[0] - start) / length) * STEPS)))
    values[step] = sample[COLUMN[figure]]
  }
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return { line: '', area: '' }
  const top = Math.max(...known) * 1.15
  // Memory changes little: on a scale from zero it would be a flat line.
  const low = figure === 'memory' ? Math.min(...known) * 0.85 : 0
  const span = top - low || 1
  const y = (value: number) => (HEIGHT - 1.5 - ((value - low) / span) * (HEIGHT - 3)).toFixed(1)
  const first = values.findIndex((value) => value !== null)
  let line = ''
  let last = known[0] ?? 0
  for (let step = first; step <= STEPS; step += 1) {
    last = values[step] ?? last
    line += `${line === '' ? 'M' : 'L'}${((step / STEPS) * WIDTH).toFixed(1)} ${y(last)}`
  }
  // Draw a line even for a single sample.
  if (first === STEPS) line = `M0 ${y(last)}L${WIDTH} ${y(last)}`
  const from = first === STEPS ? '0' : ((first / STEPS) * WIDTH).toFixed(1)
  return { line, area: `${line}L${WIDTH} ${HEIGHT}L${from} ${HEIGHT}Z` }
}
