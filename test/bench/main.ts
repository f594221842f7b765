/** `npm run bench`: everything in one run, the programs in turn, several rounds. Linux only, as it asks /proc. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { exitOnSignals } from '../support/process.ts'
import { Book } from './book.ts'
import { type Grown, measureGrowth } from './growth.ts'
import {
  type Effort,
  measureIdle,
  measureLargeStart,
  measureManyEvents,
  measureOnOneCore,
  measureRestart,
  measureTraffic,
} from './measures.ts'
import { circumstances, render } from './report.ts'
import { SUBJECTS } from './subject.ts'

const HELP = `npm run bench -- [options]
  --quick           few samples, for development
  --full            idles for ten minutes
  --idle-minutes N  idles for N minutes (default 1)
  --rounds N        rounds (default 5)
  --only NAMES      of traffic, one-core, start, memory, restart, idle, growth; separated by commas
  --write           writes docs/benchmarks.md`

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
    only: { type: 'string' },
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
const wanted = (part: string) => values.only === undefined || values.only.split(',').includes(part)
const tell = (text: string) => process.stderr.write(`${text}\n`)

async function measureRounds(): Promise<void> {
  for (let round = 0; round < effort.rounds; round += 1) {
    // Whoever is first in a round is not always the same.
    const order = SUBJECTS.map((_, i) => SUBJECTS[(i + round) % SUBJECTS.length] ?? 'bare')
    for (const subject of order) {
      tell(`round ${round + 1} of ${effort.rounds}: ${subject}`)
      if (wanted('traffic')) await measureTraffic(subject, effort, book)
      if (wanted('one-core') && subject !== 'plain') await measureOnOneCore(subject, effort, book)
      if (wanted('start') && subject !== 'plain') await measureLargeStart(subject, book)
    }
  }
}

async function measure(): Promise<Grown[]> {
  await measureRounds()
  if (wanted('restart')) await measureRestart(book)
  tell('memory')
  if (wanted('memory'))
    for (const subject of SUBJECTS) if (subject !== 'plain') await measureManyEvents(subject, effort, book)
  tell('growth')
  const grown = wanted('growth') ? await measureGrowth(effort, book) : []
  tell('idle')
  if (wanted('idle')) await measureIdle(effort, book)
  return grown
}

exitOnSignals()
if (values.help) console.log(HELP)
else {
  const about = circumstances()
  const started = performance.now()
  const grown = await measure()
  const text = render(book, grown, effort, { ...about, minutes: (performance.now() - started) / 60_000 })
  console.log(text)
  if (values.write)
    writeFileSync(new URL('../../docs/benchmarks.md', import.meta.url), `# Benchmarks\n\n${ABOUT}\n\n${text}\n`)
}
