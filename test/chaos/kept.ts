/**
 * Stores results on disk, so that an interrupted campaign can continue. The first line identifies the sources, because
 * results of a different version of the bridge do not count.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import * as v from 'valibot'
import type { EpisodeResult, Job } from './episode.ts'

const HEAD = v.object({ sources: v.string() })
const RESULT = v.object({
  /** The time of the result, in epoch milliseconds. */
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

/** A longer gap between two results is an interruption, because no episode takes that long. */
const BREAK_MS = 180_000
const PASSED = { violations: [] }

export class ResultFile {
  readonly results: readonly EpisodeResult[]
  /** The running time of the campaign without its interruptions. */
  readonly minutes: number
  readonly #path: string
  readonly #done: ReadonlySet<string>

  /** @throws Error if the file was written by a different version of the source code */
  constructor(path: string) {
    const sources = execFileSync('git', ['rev-parse', 'HEAD:src'], { encoding: 'utf8' }).trim()
    this.#path = path
    if (!existsSync(path)) writeFileSync(path, `${JSON.stringify({ sources })}\n`)
    const [head = '', ...lines] = readFileSync(path, 'utf8').trim().split('\n')
    if (v.parse(HEAD, JSON.parse(head)).sources !== sources) throw new Error(`${path} was written with other sources`)
    const entries = lines.map((line) => v.parse(RESULT, JSON.parse(line)))
    const gaps = entries.map(({ at }, i) => at - (entries[i - 1]?.at ?? at))
    this.minutes = gaps.filter((ms) => ms < BREAK_MS).reduce((sum, ms) => sum + ms, 0) / 60_000
    this.results = entries.map(({ at: _, script, agreeMs, ...result }) => {
      return { ...result, agreeMs, ...(script !== undefined && { script }), ...PASSED }
    })
    this.#done = new Set(this.results.map(keyOf))
  }

  has(job: Job): boolean {
    return this.#done.has(keyOf(job))
  }

  /** Stores only passed episodes, because failed episodes are repeated. */
  add({ history: _, violations, ...result }: EpisodeResult): void {
    if (violations.length === 0) appendFileSync(this.#path, `${JSON.stringify({ at: Date.now(), ...result })}\n`)
  }
}

const keyOf = ({ fault, seed, script }: Job) => JSON.stringify([fault, seed, script])
