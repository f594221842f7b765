/** Limits how many functions and files the daemon runs for an event and for a command. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { takeWalks, type Walks } from './walk.ts'

let walks: Walks
beforeAll(async () => {
  walks = await takeWalks()
}, 120_000)

/** Limits for the files and functions of `src`, including anonymous functions. Lower them when code gets shorter. */
const CEILINGS = {
  usage: { functions: 80, files: 26 },
  'get-settings': { functions: 165, files: 40 },
  restart: { functions: 271, files: 62 },
  // A crash runs code of the guardian even if the guardian is off, because the crash counts towards a storm.
  crash: { functions: 195, files: 48 },
  'guarded crash': { functions: 237, files: 55 },
} as const

test('an event and a command run no more functions and files than before', () => {
  for (const [name, most] of Object.entries(CEILINGS)) {
    const { all, named } = walks[name as keyof typeof CEILINGS]
    // A failed measurement, which has no functions, would also be within the limits.
    expect(named.functions, name).toBeGreaterThan(20)
    expect(all.functions, `functions of ${name}`).toBeLessThanOrEqual(most.functions)
    expect(all.files, `files of ${name}`).toBeLessThanOrEqual(most.files)
  }
})

/** Limits for the functions and files that a reader of the main lines has to follow. */
const MAIN_LINES = { usage: { functions: 18, files: 11 }, 'get-settings': { functions: 26, files: 13 } } as const

test('the main lines in docs/internals/architecture.md are run', () => {
  const docs = readFileSync(new URL('../../docs/internals/architecture.md', import.meta.url), 'utf8')
  for (const [name, most] of Object.entries(MAIN_LINES)) {
    const [, list = ''] = new RegExp(`<!-- main line: ${name} -->(.*?)<!-- /main line -->`, 's').exec(docs) ?? []
    const files = [...list.matchAll(/^- `src\/(\S+)` (.+)$/gm)]
    const line = files.flatMap(([, file, functions = '']) =>
      functions.split(', ').map((one) => `${file} ${one.replaceAll('`', '')}`),
    )
    const ran = walks[name as keyof typeof MAIN_LINES].ran.map((one) => `${one.file} ${one.name}`)
    expect(ran).toEqual(expect.arrayContaining(line))
    expect(line.length).toBeGreaterThan(10)
    expect(line.length).toBeLessThanOrEqual(most.functions)
    expect(files.length).toBeLessThanOrEqual(most.files)
  }
})
