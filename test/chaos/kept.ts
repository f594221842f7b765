/**
 * Results on disk, so that a campaign that was broken off goes on. Those of another bridge do not count: the file begins
 * with what the sources are.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import * as v from 'valibot'
import type { EpisodeResult, Job } from './episode.ts'
import { NO_HISTORY } from './history.ts'

const HEAD = v.object({ sources: v.string() })
const RESULT = v.object({
  /** Epoch milliseconds. */
  at: v.number(),
  fault: v.string(),
  seed: v.number(),
  script: v.optional(v.array(v.object({ at: v.number(), fault: v.string(), seed: v.number() }))),
  commands: v.number(),
  answers: v.number(),
  unknown: v.number(),
  badInputs: v.number(),
  agreeMs: v.optional(v.number()),
  ghosts: v.number(),
  missing: v.number(),
  wrong: v.number(),
})

/** Between two results: longer than any episode takes. */
const BREAK_MS = 180_000
const PASSED = { violations: [], history: NO_HISTORY }

export class Kept {
  readonly results: readonly EpisodeResult[]
  /** How long it took, without what lies between the end of one run and the beginning of the next. */
  readonly minutes: number
  readonly #path: string
  readonly #done: ReadonlySet<string>

  /** @throws Error if the file is that of other sources */
  constructor(path: string) {
    const sources = execFileSync('git', ['rev-parse', 'HEAD:src'], { encoding: 'utf8' }).trim()
    this.#path = path
    if (!existsSync(path)) writeFileSync(path, `${JSON.stringify({ sources })}\n`)
    const [head = '', ...lines] = readFileSync(path, 'utf8').trim().split('\n')
    if (v.parse(HEAD, JSON.parse(head)).sources !== sources) throw new Error(`${path} is of other sources`)
    const told = lines.map((line) => v.parse(RESULT, JSON.parse(line)))
    const gaps = told.map(({ at }, i) => at - (told[i - 1]?.at ?? at))
    this.minutes = gaps.filter((ms) => ms < BREAK_MS).reduce((sum, ms) => sum + ms, 0) / 60_000
    this.results = told.map(({ at: _, script, agreeMs, ...result }) => {
      return { ...result, agreeMs, ...(script !== undefined && { script }), ...PASSED }
    })
    this.#done = new Set(this.results.map(keyOf))
  }

  has(job: Job): boolean {
    return this.#done.has(keyOf(job))
  }

  /** What failed is done again. */
  add({ history: _, violations, ...result }: EpisodeResult): void {
    if (violations.length === 0) appendFileSync(this.#path, `${JSON.stringify({ at: Date.now(), ...result })}\n`)
  }
}

const keyOf = ({ fault, seed, script }: Job) => JSON.stringify([fault, seed, script])
