import { expect, test } from 'vitest'
import { LIMIT_MS } from '../fuzz/run.ts'
import { BROKERS } from '../support/brokers.ts'
import { fuzz } from './fuzz.ts'

/** `npm run fuzz` sends two hundred times as many inputs. */
const COUNT = 500

test.each(BROKERS)('every bad input is answered with its code over %s, and reaches no hub', async (broker) => {
  const report = await fuzz({ count: COUNT, seed: 20_261, broker })
  expect(report).toMatchObject({ wrong: [], answered: COUNT, crashed: 0, hubCalls: [], aliveAfter: true })
  expect(report.longestMs).toBeLessThanOrEqual(LIMIT_MS)
})
