/** The ways through the code may become shorter, not longer. */
import { expect, test } from 'vitest'
import { takeWalks } from './walk.ts'

/** At most so many functions of `src`, with those without a name, in so many files. Lower them with the code. */
const CEILINGS = {
  usage: { functions: 154, files: 43 },
  'get-settings': { functions: 210, files: 51 },
  restart: { functions: 348, files: 73 },
  crash: { functions: 221, files: 54 },
  'guarded crash': { functions: 276, files: 61 },
} as const

test('passes no more functions and files for an event and a command than before', async () => {
  const walks = await takeWalks()
  for (const [name, most] of Object.entries(CEILINGS)) {
    const { all, named } = walks[name as keyof typeof CEILINGS]
    // A walk that was not taken would be the shortest.
    expect(named.functions, name).toBeGreaterThan(20)
    expect(all.functions, `functions of ${name}`).toBeLessThanOrEqual(most.functions)
    expect(all.files, `files of ${name}`).toBeLessThanOrEqual(most.files)
  }
}, 120_000)
