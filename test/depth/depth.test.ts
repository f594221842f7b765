/** The ways through the code may become shorter, not longer. */
import { expect, test } from 'vitest'
import { takeWalks } from './walk.ts'

/** At most so many functions of `src`, with those without a name, in so many files. Lower them with the code. */
const CEILINGS = {
  usage: { functions: 84, files: 28 },
  'get-settings': { functions: 170, files: 42 },
  restart: { functions: 275, files: 63 },
  crash: { functions: 158, files: 45 },
  'guarded crash': { functions: 208, files: 54 },
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
