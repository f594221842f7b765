/** Are the checkers any good? A bridge with a bug planted in it has to be caught by the right one. */
import { runEpisode } from './episode.ts'
import type { Violation } from './history.ts'
import { PLANTS } from './plants/all.ts'
import { World } from './world.ts'

export interface PlantResult {
  readonly name: string
  readonly caught: boolean
  /** Those that had to notice and did. */
  readonly by: readonly string[]
  readonly violations: readonly Violation[]
}

/** A bug that keeps the broker wrong for ever is not waited for as long as a slow mending. */
const PATIENCE_MS = 5000

export async function provePlant(name: string, seed: number): Promise<PlantResult> {
  const plant = PLANTS[name]
  if (plant === undefined) throw new Error(`no planted bug "${name}"`)
  const { fault, caughtBy, paceMs = 25, patienceMs = PATIENCE_MS } = plant
  await using world = await World.start({ seed, preload: [`./plants/${name}.ts`] })
  world.startBridge()
  const { violations } = await runEpisode(world, { fault, seed, paceMs, patienceMs })
  const by = caughtBy.filter((checker) => violations.some((violation) => violation.checker === checker))
  return { name, caught: by.length > 0, by, violations }
}

export async function provePlants(seed: number, workers: number): Promise<PlantResult[]> {
  const names = Object.keys(PLANTS)
  const results: PlantResult[] = []
  const work = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) results.push(await provePlant(name, seed))
  }
  await Promise.all(Array.from({ length: workers }, work))
  return results.sort((a, b) => a.name.localeCompare(b.name))
}
