import { expect, test } from 'vitest'
import { LIMIT_MS } from '../fuzz/run.ts'
import { BROKERS } from '../support/brokers.ts'
import { fuzz } from './fuzz.ts'

test.each(BROKERS)('every bad input is answered by its code over %s, and reaches no hub', async (broker) => {
  const report = await fuzz({ count: 3000, seed: 20_261, broker })
  expect(report).toMatchObject({ wrong: [], unanswered: 0, crashed: 0, hubCalls: 0, aliveAfter: true })
  expect(report.longestMs).toBeLessThanOrEqual(LIMIT_MS)
  expect(Object.values(report.answered).reduce((sum, count) => sum + count, 0)).toBe(3000)
})
