/** `npm run bench`: everything in one run, the programs in turn, several rounds. Linux only, as it asks /proc. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { waiting } from '../../src/cli/progress.ts'
import { exitOnSignals } from '../support/process.ts'
import { Book } from './book.ts'
import { type Grown, measureGrowth } from './growth.ts'
import { HUBS, MANY_EFFORT, type Many, measureMany, QUICK_MANY } from './many.ts'
import { manySection, writeMany } from './many-report.ts'
import {
  type Effort,
  measureIdle,
  measureLargeStart,
  measureManyEvents,
  measureOnOneCore,
  measureRestart,
  measureTraffic,
} from './measures.ts'
import { circumstances, figuresOf, render } from './report.ts'
import { compareWith, SUBJECTS, type SubjectName } from './subject.ts'

const HELP = `npm run bench -- [options]
  --quick           few samples, for development
  --full            idles for ten minutes
  --idle-minutes N  idles for N minutes (default 1)
  --rounds N        rounds (default 5)
  --before FILE     measures an earlier version, too: its src/bin.js, beside its bundle in dist/
  --subjects NAMES  of bare, plain, before, hub2mqtt; separated by commas (default: all)
  --only NAMES      of traffic, one-core, start, memory, restart, idle, growth; separated by commas
  --many            instead of all that: 10, 100, 300 and 1,000 hubs in one process
  --write           writes docs/internals/benchmarks.md; without --only also docs/data/benchmarks.json and the charts;
                    with --many its section of that page, and docs/data/many-hubs.json`

const ABOUT = `Written by \`npm run bench -- --full --write\`, never by hand. Three programs take turns on one machine:

- *bare*: the shortest program on the same libraries that moves the same bytes. It does not reconnect, checks nothing and has no settings.
- *plain*: the same with the MQTT library as it comes, as most bridges have it: small packets wait.
- *hub2mqtt*: as its users start it.`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    'idle-minutes': { type: 'string' },
    rounds: { type: 'string' },
    before: { type: 'string' },
    subjects: { type: 'string' },
    only: { type: 'string' },
    many: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const quick: Effort = {
  rounds: 2,
  samples: 200,
  bursts: 1,
  commands: 1000,
  restMs: 2000,
  growthRounds: 1,
  largest: 1000,
  manyEvents: 100_000,
  idleMinutes: 0.2,
}
const thorough: Effort = {
  rounds: 5,
  samples: 1000,
  bursts: 3,
  commands: 5000,
  restMs: 12_000,
  growthRounds: 1,
  largest: 5000,
  manyEvents: 1_000_000,
  idleMinutes: values.full ? 10 : 1,
}

function effortOf(): Effort {
  const effort = values.quick ? quick : thorough
  return {
    ...effort,
    rounds: Number(values.rounds ?? effort.rounds),
    idleMinutes: Number(values['idle-minutes'] ?? effort.idleMinutes),
  }
}

const effort = effortOf()
const book = new Book()
const subjects = SUBJECTS.filter((one) =>
  values.subjects === undefined
    ? one !== 'before' || values.before !== undefined
    : values.subjects.split(',').includes(one),
)
if (values.before !== undefined) compareWith(values.before)
const wanted = (part: string) => values.only === undefined || values.only.split(',').includes(part)

/** On a terminal one line that counts the seconds, else a line for each step. */
async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) process.stderr.write(`${what}\n`)
  const done = waiting(what)
  try {
    return await work()
  } finally {
    done()
  }
}

async function measureRounds(): Promise<void> {
  for (let round = 0; round < effort.rounds; round += 1) {
    // Whoever is first in a round is not always the same.
    const order = subjects.map((_, i) => subjects[(i + round) % subjects.length] ?? 'bare')
    for (const subject of order) {
      await step(`round ${round + 1} of ${effort.rounds}: ${subject}`, () => measureRound(subject))
    }
  }
}

async function measureRound(subject: SubjectName): Promise<void> {
  if (wanted('traffic')) await measureTraffic(subject, effort, book)
  if (wanted('one-core') && subject !== 'plain') await measureOnOneCore(subject, effort, book)
  if (wanted('start') && subject !== 'plain') await measureLargeStart(subject, book)
}

async function measure(): Promise<Grown[]> {
  await measureRounds()
  if (wanted('restart')) await step('restart', () => measureRestart(book))
  for (const subject of subjects) {
    if (wanted('memory') && subject !== 'plain') {
      await step(`memory: ${subject}`, () => measureManyEvents(subject, effort, book))
    }
  }
  const grown = wanted('growth') ? await step('growth', () => measureGrowth(effort, book)) : []
  if (wanted('idle')) await step('idle', () => measureIdle(effort, book))
  return grown
}

function write(text: string, grown: readonly Grown[]): void {
  const file = (path: string) => new URL(`../../docs/${path}`, import.meta.url)
  const page = ['# Benchmarks', ABOUT, text, manySection()].filter((part) => part !== '')
  writeFileSync(file('internals/benchmarks.md'), `${page.join('\n\n')}\n`)
  if (values.only !== undefined) return
  writeFileSync(file('data/benchmarks.json'), `${JSON.stringify(figuresOf(book, grown), null, 2)}\n`)
  execFileSync(process.execPath, ['src/tooling/docs/main.ts'], { stdio: 'inherit' })
}

async function measureSizes(): Promise<void> {
  const sizes: Many[] = []
  for (const hubs of HUBS) {
    sizes.push(await step(`${hubs} hubs`, () => measureMany(hubs, values.quick ? QUICK_MANY : MANY_EFFORT)))
    console.log(JSON.stringify(sizes.at(-1)))
  }
  if (values.write) writeMany(sizes)
}

exitOnSignals()
if (values.help) console.log(HELP)
else if (values.many) await measureSizes()
else {
  const about = circumstances()
  const started = performance.now()
  const grown = await measure()
  const text = render(book, grown, effort, { ...about, minutes: (performance.now() - started) / 60_000 })
  console.log(text)
  if (values.write) write(text, grown)
}
