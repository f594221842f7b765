/** The goals, and how to compute each from the measured values. */
import type { Book, Metric } from './book.ts'
import { ratios } from './stats.ts'
import type { SubjectName } from './subject.ts'

type Version = 'hub2mqtt' | 'before'

export interface Row {
  readonly title: string
  readonly goal: string
  readonly values: (book: Book, version?: Version) => readonly number[]
  readonly meets: (value: number) => boolean
  readonly show: (value: number) => string
  readonly reason?: string
}

/** The reason why commands may cost more than with `bare`. */
const CHECKED = 'hub2mqtt parses, checks, queues, logs, counts and remembers each command; *bare* does none of this'
/** The reason for noise: the CPU sleeps between single events or commands, and waking it takes longer than the work. */
const NOISY =
  'the values of the same program vary more than this between rounds: see the spread, and the rows for one core'
const GARBAGE =
  'under load, V8 lets the heap grow before it collects garbage; the next table also shows the value of *bare*'

const ratio =
  (metric: Metric, under: SubjectName = 'bare') =>
  (book: Book, version: Version = 'hub2mqtt') =>
    ratios(book.of(version, metric), book.of(under, metric))
const times = (value: number) => `${value.toFixed(2)} ×`
const bytes = (unit: 'KB' | 'MB') => (value: number) =>
  `${(value / (unit === 'KB' ? 1024 : 1024 * 1024)).toFixed(1)} ${unit}`

function atMost(title: string, metric: Metric, limit: number, reason?: string): Row {
  const goal = `≤ ${limit} × bare`
  return {
    title,
    goal,
    values: ratio(metric),
    meets: (value) => value <= limit,
    show: times,
    ...(reason && { reason }),
  }
}

/** A row whose value is not compared with another program. */
function ofItself(title: string, metric: Metric, goal: string, most: number, show: Row['show'], reason?: string): Row {
  const values = (book: Book, version: Version = 'hub2mqtt') => book.of(version, metric)
  return { title, goal, values, meets: (value) => value <= most, show, ...(reason && { reason }) }
}

const KB = 1024
const MB = 1024 * KB

export const ROWS: readonly Row[] = [
  atMost('event → subscriber, one at a time, p50', 'eventP50', 1.05, NOISY),
  atMost('event → subscriber, one at a time, p99', 'eventP99', 1.2, NOISY),
  atMost('CPU per event, one at a time', 'eventCpuUs', 1.2),
  atMost('CPU per event at 100 a second', 'steadyCpuUs', 1.2),
  atMost('burst of 20,000 events for 50 apps, until the last state is correct', 'burstMs', 1),
  atMost('CPU per event in that burst', 'burstCpuUs', 1.2),
  atMost('command → answer, one at a time, p50', 'commandP50', 1.3, NOISY),
  atMost('command → answer, one at a time, p99', 'commandP99', 1.5, NOISY),
  {
    title: 'command → answer, one at a time, p50: faster than *plain*',
    goal: '≥ 20 ×',
    values: (book, version = 'hub2mqtt') => ratios(book.of('plain', 'commandP50'), book.of(version, 'commandP50')),
    meets: (value) => value >= 20,
    show: times,
    reason: NOISY,
  },
  {
    title: 'commands per second, with 16 clients and 50 apps',
    goal: '≥ 0.9 × bare',
    values: ratio('commandsPerSecond'),
    meets: (value) => value >= 0.9,
    show: times,
    reason: CHECKED,
  },
  atMost('CPU per command with 16 clients', 'commandCpuUs', 1, CHECKED),
  atMost('all processes on one core: event → subscriber, p50', 'oneCoreEventP50', 1.15),
  atMost('all processes on one core: command → answer, p50', 'oneCoreCommandP50', 1.3, CHECKED),
  atMost('all processes on one core: CPU per command with 16 clients', 'oneCoreCommandCpuUs', 1.2, CHECKED),
  atMost(
    'start → all states retained, `online` seen: 50 apps, discovery on',
    'start50Ms',
    1,
    'hub2mqtt reads the retained messages before it publishes any message',
  ),
  atMost(
    'start → all states and discovery retained: 50 apps',
    'wholeStart50Ms',
    1.1,
    'hub2mqtt creates about 50 discovery messages of 7 KB, *bare* creates none',
  ),
  atMost('start → all states retained, `online` seen: 1,000 apps', 'start1000Ms', 2),
  atMost('RSS at rest, 50 apps', 'idleRss', 1.3),
  ofItself('RSS after 1,000,000 events, over RSS at rest', 'addedRss', '≤ +10 MB', 10 * MB, bytes('MB'), GARBAGE),
  ofItself('RSS per additional app (1,000 → 5,000)', 'appRss', '≤ 20 KB', 20 * KB, bytes('KB')),
  ofItself('RSS per additional hub of 50 apps (1 → 50)', 'hubRss', '≤ 3 MB', 3 * MB, bytes('MB')),
  ofItself('restart with nothing changed: states published', 'restartState', '0', 0, String),
  ofItself('restart with nothing changed: discovery published', 'restartDiscovery', '0', 0, String),
  ofItself('idle, realtime up, 50 apps: CPU', 'idleCpuShare', '≤ 0.1 % of a core', 0.001, (value) => {
    return `${(value * 100).toFixed(3)} %`
  }),
]
