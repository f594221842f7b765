import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { runs } from '../support/runs.ts'
import { ENTRIES } from './entries.ts'
import { LIMIT_MS } from './run.ts'

describe(`no input blocks the event loop for more than ${LIMIT_MS} ms`, () => {
  test.each(ENTRIES)('$name', async ({ run }) => {
    const inputs = runs(100)
    expect(await run(inputs, 20_261)).toMatchObject({ slow: [], inputs })
  })
})

test('the program runs without vitest, and prints a row for each entry', () => {
  const printed = execFileSync(process.execPath, ['test/fuzz/main.ts', '--count', '10', '--only', 'icons'])
  expect(String(printed)).toMatch(/^\| hub: icons \| 10 \|/m)
})
