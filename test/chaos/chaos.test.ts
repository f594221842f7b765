import { describe, expect, test } from 'vitest'
import { mosquittoPath } from '../support/brokers.ts'
import { Random } from '../support/random.ts'
import { everyFault, runJobs } from './campaign.ts'
import type { EpisodeResult } from './episode.ts'
import { FAULTS } from './faults/all.ts'
import { provePlants } from './prove.ts'

const SEED = 1
/** `npm run chaos` includes all quick faults, and a planted bug for each checker. */
const FAULT = 'hub executes and resets'
const PLANT = 'any-spelling'

describe.skipIf(mosquittoPath === undefined)('with a fault around it', { concurrent: true }, () => {
  test('the bridge keeps every promise', async () => {
    const results: EpisodeResult[] = []
    const onResult = (result: EpisodeResult) => void results.push(result)
    await runJobs(everyFault([FAULT], SEED, 1), { workers: 1, paceMs: 40, onResult })
    expect(results).toMatchObject([{ fault: FAULT, violations: [], answers: expect.toSatisfy((count) => count > 5) }])
  })

  test('a checker detects the bug that is planted for it', async () => {
    const results = await provePlants({ seed: SEED, tries: 3, workers: 1, names: [PLANT] })
    expect(results).toMatchObject([{ name: PLANT, caught: true }])
  })
})

test('the same seed gives the same schedule, and another seed gives another schedule', () => {
  const draws = (seed: number) => Array.from({ length: 5 }, () => new Random(seed)).map((random) => random.next())
  const stream = (seed: number) => {
    const random = new Random(seed).fork('load')
    return Array.from({ length: 100 }, () => random.int(0, 1000))
  }
  expect(new Set(draws(7)).size).toBe(1)
  expect(stream(7)).toEqual(stream(7))
  expect(stream(7)).not.toEqual(stream(8))
})

test('there are enough kinds of fault', () => {
  expect(Object.keys(FAULTS).length).toBeGreaterThan(50)
})
