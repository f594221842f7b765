/** What is said of many hubs in one process: the figures of each size, and the goals for the largest. */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import * as v from 'valibot'
import { MANY, type Many } from './many.ts'
import { round } from './stats.ts'
import { table } from './table.ts'

const HEADING = '## Many hubs in one process'
const FILE = new URL('../../docs/data/many-hubs.json', import.meta.url)
const PAGE = new URL('../../docs/internals/benchmarks.md', import.meta.url)
const MEASURED = v.object({ date: v.string(), sizes: v.array(MANY) })

const MB = 1024 * 1024
const seconds = (ms: number) => `${round(ms / 1000)} s`
const percent = (share: number) => `${round(share * 100)} %`

const ROWS: readonly (readonly [title: string, show: (size: Many) => string])[] = [
  ['system load before', ({ load }) => load.toFixed(1)],
  ['start → all states retained', ({ statesMs }) => seconds(statesMs)],
  ['start → all of discovery retained too', ({ wholeMs }) => seconds(wholeMs)],
  ['CPU of that', ({ startCpuMs }) => seconds(startCpuMs)],
  ['RSS at rest', ({ rss }) => `${round(rss / MB)} MB`],
  ['RSS at most', ({ peakRss }) => `${round(peakRss / MB)} MB`],
  ['CPU while nothing happens', ({ idleShare }) => `${percent(idleShare)} of a core`],
  ['CPU at 1,000 events a second', ({ busyShare }) => `${percent(busyShare)} of a core`],
  ['restart with nothing changed → all hubs live', ({ restartMs }) => seconds(restartMs)],
  ['messages that it published', ({ restartSent }) => String(restartSent)],
  ['broker comes back empty → all states retained', ({ brokerStatesMs }) => seconds(brokerStatesMs)],
  ['the same, all of discovery too', ({ brokerWholeMs }) => seconds(brokerWholeMs)],
]

interface Goal {
  readonly title: string
  readonly goal: string
  readonly of: (size: Many) => number
  readonly most: number
  readonly show: (value: number) => string
}

const GOALS: readonly Goal[] = [
  { title: 'all states retained', goal: '20 s', of: ({ statesMs }) => statesMs, most: 20_000, show: seconds },
  { title: 'all of discovery retained', goal: '2 min', of: ({ wholeMs }) => wholeMs, most: 120_000, show: seconds },
  { title: 'RSS at rest', goal: '500 MB', of: ({ rss }) => rss / MB, most: 500, show: (mb) => `${round(mb)} MB` },
  { title: 'restart', goal: '15 s', of: ({ restartMs }) => restartMs, most: 15_000, show: seconds },
  { title: 'published by it', goal: '0', of: ({ restartSent }) => restartSent, most: 0, show: String },
]

const ABOUT = `Written by \`npm run bench -- --many --write\`. Each hub has 50 apps and an API key of its own. Bridge, Mosquitto,
the emulated hubs (one process) and a subscriber to everything share the same cores, so a good part of the time is theirs.
Home Assistant is told of all apps as fast as the broker takes it (\`discovery.rate: 0\`), once the hubs have been read.
The start begins without a retained message; before the restart, the subscriber has read all that are retained.`

/** The section, from what was measured last; '' if nothing was. */
export function manySection(): string {
  const measured = read()
  if (measured === undefined) return ''
  const { date, sizes } = measured
  const largest = sizes.reduce<Many | undefined>(
    (most, size) => (size.hubs > (most?.hubs ?? 0) ? size : most),
    undefined,
  )
  const head = ['', ...sizes.map(({ hubs, apps }) => `${hubs.toLocaleString('en')} × ${apps}`)]
  const goals = GOALS.map(({ title, goal, of, most, show }) => {
    const value = largest === undefined ? Number.NaN : of(largest)
    return [title, `≤ ${goal}`, show(value), value <= most ? 'met' : '**missed**']
  })
  return [
    HEADING,
    ABOUT,
    `Measured on ${date}: ${cpus().length} cores, Node ${process.versions.node}.`,
    table(
      head,
      ROWS.map(([title, show]) => [title, ...sizes.map(show)]),
    ),
    `The goals for ${(largest?.hubs ?? 0).toLocaleString('en')} hubs on two cores:`,
    table(['', 'Goal', 'Measured', ''], goals),
  ].join('\n\n')
}

/** Keeps what was measured, and replaces the section of the page. */
export function writeMany(sizes: readonly Many[]): void {
  const measured: v.InferOutput<typeof MEASURED> = { date: new Date().toISOString().slice(0, 10), sizes: [...sizes] }
  writeFileSync(FILE, `${JSON.stringify(measured, null, 2)}\n`)
  const [before = ''] = readFileSync(PAGE, 'utf8').split(HEADING)
  writeFileSync(PAGE, `${before.trimEnd()}\n\n${manySection()}\n`)
}

function read(): v.InferOutput<typeof MEASURED> | undefined {
  try {
    return v.parse(MEASURED, JSON.parse(readFileSync(FILE, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
