import { describe, expect, test } from 'vitest'
import { mosquittoPath } from '../support/brokers.ts'
import { Random } from '../support/random.ts'
import { everyFault, runJobs } from './campaign.ts'
import type { EpisodeResult } from './episode.ts'
import { FAULTS } from './faults/all.ts'
import { PLANTS } from './plants/all.ts'
import { provePlants } from './prove.ts'

const SEED = 1
/** One fault of each family; longer runs include all faults. */
const SHORT = [
  'broker killed, memory lost',
  'broker half open',
  'broker resets',
  'hub executes and resets',
  'another hub at the address',
  'realtime silent',
  'bridge killed',
  'bridge ended while the hub hangs',
  'clock jumps',
  'states forged',
]

describe.skipIf(mosquittoPath === undefined)('with faults around it', { concurrent: true, timeout: 600_000 }, () => {
  test('the bridge keeps every promise', async () => {
    const results: EpisodeResult[] = []
    const onResult = (result: EpisodeResult) => void results.push(result)
    await runJobs(everyFault(SHORT, SEED, 1), { workers: 2, paceMs: 40, onResult })
    expect(results.flatMap(({ fault, violations }) => violations.map((one) => ({ fault, ...one })))).toEqual([])
    expect(results.map(({ fault }) => fault).sort()).toEqual([...SHORT].sort())
    expect(results.reduce((sum, { answers }) => sum + answers, 0)).toBeGreaterThan(50)
  })

  test('each checker detects the bug that is planted for it', async () => {
    const names = Object.keys(PLANTS).filter((name) => PLANTS[name]?.longRuns !== true)
    const results = await provePlants({ seed: SEED, tries: 3, workers: 3, names })
    expect(results.filter(({ caught }) => !caught)).toEqual([])
    expect(results).toHaveLength(names.length)
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
  for (const name of SHORT) expect(FAULTS).toHaveProperty([name])
})
