/** What more apps and more hubs cost: a small plot for each figure and each way to grow. */
import type { Benchmarks } from './data.ts'
import { dot, linear, logarithmic, path, roundUp, svg, text } from './svg.ts'

type Grown = Benchmarks['grown'][number]

const FIGURES = [
  { title: 'start, ms', of: ({ startMs }: Grown) => startMs },
  { title: 'memory at rest, MB', of: ({ rssMb }: Grown) => rssMb },
  { title: 'CPU per event, µs', of: ({ cpuUs }: Grown) => cpuUs },
] as const

/** Of hubs with as many apps as these. */
const APPS_OF_MANY = 50
const WAYS = [
  { title: 'apps of one hub', belongs: ({ hubs }: Grown) => hubs === 1, at: ({ apps }: Grown) => apps },
  {
    title: `hubs of ${APPS_OF_MANY} apps`,
    belongs: ({ apps }: Grown) => apps === APPS_OF_MANY,
    at: ({ hubs }: Grown) => hubs,
  },
] as const

const WIDTH = 760
const PLOT = { width: 190, height: 110 }
const LEFT = 60
const TOP = 80
const COLUMN = 240
const ROW = PLOT.height + 66

function plot({
  x,
  y,
  points,
  most,
  below,
}: {
  readonly x: number
  readonly y: number
  /** Sorted. */
  readonly points: readonly (readonly [at: number, value: number])[]
  readonly most: number
  readonly below: string
}): string[] {
  const sizes = points.map(([at]) => at)
  const across = logarithmic([Math.min(...sizes), Math.max(...sizes)], [x, x + PLOT.width])
  const up = linear([0, most], [y + PLOT.height, y])
  const grid = [0, most / 2, most].flatMap((value) => [
    path('grid', [
      [x, up(value)],
      [x + PLOT.width, up(value)],
    ]),
    text(value.toLocaleString('en'), { x: x - 8, y: up(value) + 4, anchor: 'end', class: 'quiet', size: 11 }),
  ])
  const places = points.map(([at, value]) => [across(at), up(value)] as const)
  return [
    ...grid,
    path('line', places, { width: 2 }),
    ...places.map(([cx, cy]) => dot('hub2mqtt', cx, cy, 3.5)),
    ...sizes.map((at) =>
      text(at.toLocaleString('en'), {
        x: across(at),
        y: y + PLOT.height + 16,
        anchor: 'middle',
        class: 'quiet',
        size: 11,
      }),
    ),
    text(below, { x: x + PLOT.width / 2, y: y + PLOT.height + 34, anchor: 'middle', class: 'quiet' }),
  ]
}

export function growthChart({ date, grown }: Benchmarks): string {
  const body = FIGURES.flatMap(({ title, of }, column) => {
    const x = LEFT + column * COLUMN
    const most = roundUp(Math.max(...grown.map(of)))
    return [
      text(title, { x, y: TOP - 16, weight: 600 }),
      ...WAYS.flatMap(({ title: below, belongs, at }, row) => {
        const points = grown
          .filter(belongs)
          .map((one) => [at(one), of(one)] as const)
          .sort(([a], [b]) => a - b)
        return points.length < 2 ? [] : plot({ x, y: TOP + row * ROW, points, most, below })
      }),
    ]
  })
  return svg({
    title: 'What more apps and more hubs cost',
    description: 'Start, memory and CPU per event, against the number of apps of one hub and the number of hubs.',
    width: WIDTH,
    height: TOP + WAYS.length * ROW,
    body: [...body, text(date, { x: WIDTH - 20, y: 28, anchor: 'end', class: 'quiet' })],
  })
}
