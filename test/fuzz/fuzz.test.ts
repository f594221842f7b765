import { describe, expect, test } from 'vitest'
import { ENTRIES } from './entries.ts'
import { LIMIT_MS } from './run.ts'

describe(`no input blocks the event loop for more than ${LIMIT_MS} ms`, () => {
  test.each(ENTRIES)('$name', async ({ run }) => {
    expect(await run(1000, 20_261)).toMatchObject({ slow: [], inputs: 1000 })
  })
})
