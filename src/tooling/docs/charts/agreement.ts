/** How long after each kind of fault the broker holds what it has to: a row for each kind. */
import type { Reliability } from './data.ts'
import { dot, logarithmic, path, svg, text } from './svg.ts'

const WIDTH = 760
const LEFT = 270
const RIGHT = WIDTH - 30
const ROW = 16
const TOP = 96
const TICKS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600]

export function agreementChart({ date, seed, kinds }: Reliability): string {
  const measured = kinds
    .flatMap(({ fault, agreeMs }) => (agreeMs === null ? [] : [{ fault, ...agreeMs }]))
    .sort((a, b) => b.p95 - a.p95 || a.fault.localeCompare(b.fault))
  const all = measured.flatMap(({ p50, max }) => [p50 / 1000, max / 1000])
  const low = TICKS_S.findLast((tick) => tick <= Math.min(...all)) ?? 0.1
  const high = TICKS_S.find((tick) => tick >= Math.max(...all)) ?? 600
  const across = logarithmic([low, high], [LEFT, RIGHT])
  const bottom = TOP + measured.length * ROW
  const grid = TICKS_S.filter((tick) => tick >= low && tick <= high).flatMap((tick) => [
    path('grid', [
      [across(tick), TOP - 6],
      [across(tick), bottom],
    ]),
    text(`${tick} s`, { x: across(tick), y: TOP - 12, anchor: 'middle', class: 'quiet', size: 11 }),
  ])
  const rows = measured.flatMap(({ fault, p50, p95, max }, index) => {
    const y = TOP + index * ROW + ROW / 2
    const [middle, most, end] = [across(p50 / 1000), across(p95 / 1000), across(max / 1000)]
    return [
      text(fault, { x: LEFT - 12, y: y + 4, anchor: 'end', size: 11 }),
      path(
        'line',
        [
          [most, y],
          [end, y],
        ],
        { width: 2, dash: '2 3' },
      ),
      path(
        'line',
        [
          [middle, y],
          [most, y],
        ],
        { width: 3 },
      ),
      dot('hub2mqtt', middle, y, 4),
    ]
  })
  const legend = [
    dot('hub2mqtt', 26, 48, 4),
    text('median', { x: 38, y: 52 }),
    path(
      'line',
      [
        [100, 48],
        [124, 48],
      ],
      { width: 3 },
    ),
    text('to the 95th percentile', { x: 132, y: 52 }),
    path(
      'line',
      [
        [270, 48],
        [294, 48],
      ],
      { width: 2, dash: '2 3' },
    ),
    text('to the longest', { x: 302, y: 52 }),
  ]
  return svg({
    title: 'Time to agree after the end of a fault',
    description: 'For each kind of fault the median, the 95th percentile and the longest time, on a logarithmic axis.',
    width: WIDTH,
    height: bottom + 16,
    body: [
      ...grid,
      ...rows,
      ...legend,
      text(`seed ${seed}; ${date}`, { x: WIDTH - 20, y: 28, anchor: 'end', class: 'quiet' }),
    ],
  })
}
