/** The ways through the code may become shorter, not longer. */
import { expect, test } from 'vitest'
import { takeWalks } from './walk.ts'

/** At most so many functions of `src`, with those without a name, in so many files. Lower them with the code. */
const CEILINGS = {
  usage: { functions: 82, files: 27 },
  'get-settings': { functions: 165, files: 40 },
  restart: { functions: 271, files: 62 },
  crash: { functions: 154, files: 44 },
  'guarded crash': { functions: 204, files: 53 },
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
