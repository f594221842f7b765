import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { ENTRIES } from './entries.ts'
import { LIMIT_MS } from './run.ts'

describe(`no input blocks the event loop for more than ${LIMIT_MS} ms`, () => {
  test.each(ENTRIES)('$name', async ({ run }) => {
    expect(await run(1000, 20_261)).toMatchObject({ slow: [], inputs: 1000 })
  })
})

test('the program runs without vitest, and prints a row for each entry', () => {
  const printed = execFileSync(process.execPath, ['test/fuzz/main.ts', '--count', '10', '--only', 'icons'])
  expect(String(printed)).toMatch(/^\| hub: icons \| 10 \|/m)
})
