import { cpus, totalmem } from 'node:os'
import type { Book } from './book.ts'
import type { Grown } from './growth.ts'
import type { Effort } from './measures.ts'
import { ROWS, type Row } from './rows.ts'
import { median, round } from './stats.ts'
import { SUBJECTS } from './subject.ts'
import { table } from './table.ts'

function goalRow(row: Row, book: Book): readonly string[] {
  const { title, goal, show, meets, reason } = row
  const values = row.values(book)
  const earlier = hasEarlier(book) ? [earlierOf(row, book)] : []
  if (values.length === 0) return [title, goal, 'not measured', '', ...earlier, '']
  const middle = median(values)
  const spread = values.length === 1 ? '' : `${show(Math.min(...values))} – ${show(Math.max(...values))}`
  const verdict = meets(middle) ? 'met' : `**missed**${reason === undefined ? '' : `: ${reason}`}`
  return [title, goal, show(middle), spread, ...earlier, verdict]
}

const hasEarlier = (book: Book) => book.of('before', 'idleRss').length > 0

function earlierOf({ values, show }: Row, book: Book): string {
  const measured = values(book, 'before')
  return measured.length === 0 ? '' : show(median(measured))
}

export const FIGURES = [
  ['event → subscriber, p50', 'eventP50', 'ms'],
  ['event → subscriber, p99', 'eventP99', 'ms'],
  ['CPU per event, one at a time', 'eventCpuUs', 'µs'],
  ['CPU per event at 100 a second', 'steadyCpuUs', 'µs'],
  ['the same, with the page open', 'viewedCpuUs', 'µs'],
  ['burst of 20,000 events', 'burstMs', 'ms'],
  ['CPU per event in a burst', 'burstCpuUs', 'µs'],
  ['the same, with an event for every change', 'eventfulCpuUs', 'µs'],
  ['command → answer, p50', 'commandP50', 'ms'],
  ['command → answer, p99', 'commandP99', 'ms'],
  ['commands per second, 16 clients', 'commandsPerSecond', '/s'],
  ['CPU per command, 16 clients', 'commandCpuUs', 'µs'],
  ['all on one core: event → subscriber, p50', 'oneCoreEventP50', 'ms'],
  ['all on one core: command → answer, p50', 'oneCoreCommandP50', 'ms'],
  ['all on one core: CPU per command', 'oneCoreCommandCpuUs', 'µs'],
  ['start, 50 apps: states', 'start50Ms', 'ms'],
  ['start, 50 apps: states and discovery', 'wholeStart50Ms', 'ms'],
  ['start, 1,000 apps: states', 'start1000Ms', 'ms'],
  ['RSS at rest, 50 apps', 'idleRss', 'MB', 1024 * 1024],
  ['RSS added by 1,000,000 events', 'addedRss', 'MB', 1024 * 1024],
] as const satisfies readonly (readonly [title: string, metric: string, unit: string, scale?: number])[]

const today = () => new Date().toISOString().slice(0, 10)

interface Circumstances {
  readonly loadBefore: number
  readonly minutes: number
}

export function render(book: Book, grown: readonly Grown[], effort: Effort, about: Circumstances): string {
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 1024 ** 3)} GB`
  const subjects = SUBJECTS.filter((subject) => subject !== 'before' || hasEarlier(book))
  const figures = FIGURES.map(([title, metric, unit, scale = 1]) => [
    title,
    ...subjects.map((subject) => {
      const values = book.of(subject, metric)
      return values.length === 0 ? '' : `${round(median(values) / scale)} ${unit}`
    }),
  ])
  return [
    `Measured on ${today()}: ${machine}, ${process.platform}, Node ${process.versions.node}, ` +
      `Mosquitto (set_tcp_nodelay on); ${effort.rounds} rounds in ${Math.round(about.minutes)} minutes, ${effort.idleMinutes} minutes idle, ` +
      `system load ${about.loadBefore.toFixed(1)} at the start.`,
    table(
      [
        'Figure (hub2mqtt ÷ bare in the same round)',
        'Goal',
        'Median',
        'Spread',
        ...(hasEarlier(book) ? ['Before'] : []),
        '',
      ],
      ROWS.map((row) => goalRow(row, book)),
    ),
    'The medians from which the ratios are calculated:',
    table(['', ...subjects], figures),
    'The cost of additional apps and hubs:',
    table(
      ['Hubs', 'Apps of each hub', 'Start', 'RSS at rest', 'CPU per event'],
      grown.map(({ size, startMs, rss, cpuUs }) => [
        String(size.hubs),
        size.apps.toLocaleString('en'),
        `${round(startMs)} ms`,
        `${round(rss / 1024 ** 2)} MB`,
        `${round(cpuUs)} µs`,
      ]),
    ),
  ].join('\n\n')
}
