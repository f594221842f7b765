import { expect, test } from 'vitest'
import { BROKERS } from '../support/brokers.ts'
import { differences } from './compare.ts'
import { expected } from './golden.ts'
import { record } from './scenario.ts'

/** Both tests together take ten seconds on an idle machine, and longer on a busy machine. */
const LIMIT_MS = 180_000

test.concurrent.each(BROKERS)(
  'subscribers on %s receive exactly the recorded messages',
  async (kind) => {
    const found = differences(expected(kind), await record(kind))
    expect(
      found,
      `${found.slice(0, 20).join('\n')}\nIf this change is intended: node test/recording/main.ts --write`,
    ).toEqual([])
  },
  LIMIT_MS,
)
