import { expect, test } from 'vitest'
import { BROKERS } from '../support/brokers.ts'
import { differences } from './compare.ts'
import { expected } from './golden.ts'
import { record } from './scenario.ts'

/** Ten seconds on an idle machine; a busy one takes what it takes. */
const LIMIT_MS = 180_000

test.each(BROKERS)(
  'subscribers see on %s exactly what is on record',
  async (kind) => {
    const found = differences(expected(kind), await record(kind))
    expect(found, `${found.slice(0, 20).join('\n')}\nIf this is meant: node test/recording/main.ts --write`).toEqual([])
  },
  LIMIT_MS,
)
