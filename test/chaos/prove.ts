/** Tests that the right checker detects each planted bug. */
import { runEpisode } from './episode.ts'
import type { Violation } from './history.ts'
import { PLANTS } from './plants/all.ts'
import { World } from './world.ts'

export interface PlantResult {
  readonly name: string
  readonly seed: number
  readonly caught: boolean
  /** The checkers in `caughtBy` that detected the bug. */
  readonly by: readonly string[]
  readonly violations: readonly Violation[]
  readonly ms: number
}

interface ProveOptions {
  readonly seed: number
  /** The number of seeds for each bug; default: 1. */
  readonly seeds?: number
  /** How many seeds to try until a bug is detected, because not every schedule reveals it; default: 1. */
  readonly tries?: number
  readonly workers: number
  /** The names of the bugs; default: all bugs. */
  readonly names?: readonly string[]
  readonly onResult?: (result: PlantResult) => void
}

/** A shorter limit than for faults, because with some bugs the retained messages never match the hub's state. */
const TIMEOUT_MS = 5000

async function provePlant(name: string, seed: number): Promise<PlantResult> {
  const plant = PLANTS[name]
  if (plant === undefined) throw new Error(`unknown planted bug "${name}"`)
  const { fault, caughtBy, paceMs = 25, timeoutMs = TIMEOUT_MS, env = {} } = plant
  const startedAt = performance.now()
  await using world = await World.prepare({ seed, env, preload: ['./preload/clock.ts', `./plants/${name}.ts`] })
  world.startBridge()
  const calm = (error: unknown) => ({ violations: [{ checker: 'calm', what: String(error) }] })
  const { violations } = await runEpisode(world, { fault, seed, paceMs, timeoutMs }).catch(calm)
  const by = caughtBy.filter((checker) => violations.some((violation) => violation.checker === checker))
  return { name, seed, caught: by.length > 0, by, violations, ms: performance.now() - startedAt }
}

export async function provePlants({
  seed,
  seeds = 1,
  tries = 1,
  workers,
  names = Object.keys(PLANTS),
  onResult,
}: ProveOptions): Promise<PlantResult[]> {
  const jobs = names.flatMap((name) => Array.from({ length: seeds }, (_, index) => ({ name, seed: seed + index })))
  const results: PlantResult[] = []
  const work = async () => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
      let result = await provePlant(job.name, job.seed)
      for (let tried = 1; !result.caught && tried < tries; tried += 1) {
        result = await provePlant(job.name, job.seed + tried * seeds)
      }
      results.push(result)
      onResult?.(result)
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  return results.sort((a, b) => a.name.localeCompare(b.name) || a.seed - b.seed)
}
