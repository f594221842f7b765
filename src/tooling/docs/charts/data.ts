/** What the benchmarks and the fault campaign have measured, as they write it beside their pages. */
import { readFileSync } from 'node:fs'
import * as v from 'valibot'

const Subjects = v.object({ bare: v.number(), plain: v.number(), hub2mqtt: v.number() })

const Benchmarks = v.object({
  date: v.string(),
  /** Medians. */
  latencyMs: v.object({ eventP50: Subjects, eventP99: Subjects, commandP50: Subjects, commandP99: Subjects }),
  /** `apps` of each hub. */
  grown: v.array(
    v.object({ hubs: v.number(), apps: v.number(), startMs: v.number(), rssMb: v.number(), cpuUs: v.number() }),
  ),
})

const Reliability = v.object({
  date: v.string(),
  commit: v.string(),
  seed: v.number(),
  kinds: v.array(
    v.object({
      fault: v.string(),
      episodes: v.number(),
      failed: v.number(),
      /** From the end of the fault until the broker holds what it has to; `null` if that never came. */
      agreeMs: v.nullable(v.object({ p50: v.number(), p95: v.number(), max: v.number() })),
    }),
  ),
})

export type Benchmarks = v.InferOutput<typeof Benchmarks>
export type Reliability = v.InferOutput<typeof Reliability>

const FOLDER = new URL('../../../../docs/data/', import.meta.url)
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))

export const readBenchmarks = (): Benchmarks => v.parse(Benchmarks, read('benchmarks.json'))
export const readReliability = (): Reliability => v.parse(Reliability, read('reliability.json'))
