/** Latencies beside those of the shortest program that does the same: a bar for each program. */
import type { Benchmarks } from './data.ts'
import { bar, figure, linear, roundUp, svg, text } from './svg.ts'

const SUBJECTS = ['bare', 'hub2mqtt', 'plain'] as const
const PANELS = [
  { title: 'hub event → subscriber', rows: ['eventP50', 'eventP99'] },
  { title: 'command → answer', rows: ['commandP50', 'commandP99'] },
] as const

const WIDTH = 760
const LEFT = 130
const RIGHT = WIDTH - 80
const BAR = 14
const GROUP = SUBJECTS.length * BAR + 16
const PANEL = 2 * GROUP + 46
const TOP = 72

export function latencyChart({ date, latencyMs }: Benchmarks): string {
  const legend = SUBJECTS.flatMap((subject, index) => {
    const x = 20 + index * 110
    return [bar(subject, x, 42, 12, 12), text(subject, { x: x + 18, y: 52 })]
  })
  const panels = PANELS.flatMap(({ title, rows }, index) => {
    const top = TOP + index * PANEL
    const most = Math.max(...rows.flatMap((row) => Object.values(latencyMs[row])))
    const scale = linear([0, roundUp(most)], [LEFT, RIGHT])
    return [
      text(title, { x: 20, y: top + 16, weight: 600 }),
      ...rows.flatMap((row, at) => {
        const y = top + 28 + at * GROUP
        return [
          text(row.endsWith('P50') ? 'median' : '99th percentile', {
            x: LEFT - 10,
            y: y + 1.5 * BAR + 4,
            anchor: 'end',
            class: 'quiet',
          }),
          ...SUBJECTS.flatMap((subject, place) => {
            const value = latencyMs[row][subject]
            const end = scale(value)
            return [
              bar(subject, LEFT, y + place * BAR, end - LEFT, BAR - 2),
              text(`${figure(value)} ms`, { x: end + 6, y: y + place * BAR + 10, size: 11 }),
            ]
          }),
        ]
      }),
    ]
  })
  return svg({
    title: 'Latency against the bare program',
    description: 'Bars of the median and the 99th percentile for an event and for a command, of three programs.',
    width: WIDTH,
    height: TOP + PANELS.length * PANEL + 12,
    body: [
      ...legend,
      ...panels,
      text(`one at a time; ${date}`, { x: WIDTH - 20, y: 28, anchor: 'end', class: 'quiet' }),
    ],
  })
}
