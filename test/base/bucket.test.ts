import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Bucket } from '../../src/base/bucket.ts'
import { FakeClock } from '../support/fake-clock.ts'

const rates = fc.record({ max: fc.integer({ min: 1, max: 20 }), everyMs: fc.integer({ min: 1, max: 5_000 }) })
const pauses = fc.array(fc.nat(20_000), { minLength: 1, maxLength: 100 })

test('a bucket allows its burst immediately, and one more after each interval', async () => {
  await fc.assert(
    fc.asyncProperty(rates, async (rate) => {
      const clock = new FakeClock()
      const bucket = new Bucket(clock, rate)
      for (let taken = 0; taken < rate.max; taken += 1) {
        expect(bucket.wait()).toBe(0)
        bucket.take()
      }
      for (let more = 0; more < 3; more += 1) {
        expect(bucket.wait()).toBe(rate.everyMs)
        await clock.advance(rate.everyMs)
        expect(bucket.wait()).toBe(0)
        bucket.take()
      }
    }),
  )
})

test('a caller that takes only when allowed never exceeds the burst and one per interval', async () => {
  await fc.assert(
    fc.asyncProperty(rates, pauses, async (rate, pauses) => {
      const clock = new FakeClock()
      const bucket = new Bucket(clock, rate)
      let taken = 0
      for (const ms of pauses) {
        await clock.advance(ms)
        for (; bucket.wait() === 0; bucket.take()) taken += 1
        expect(taken).toBeLessThanOrEqual(rate.max + clock.elapsed() / rate.everyMs + 1e-6)
      }
    }),
  )
})

test('the wait that a bucket returns is enough, and exact to a millisecond', async () => {
  await fc.assert(
    fc.asyncProperty(rates, fc.nat(5_000), async (rate, ms) => {
      const clock = new FakeClock()
      const bucket = new Bucket(clock, rate)
      for (; bucket.wait() === 0; bucket.take());
      await clock.advance(ms % rate.everyMs)
      const wait = bucket.wait()
      const before = Math.max(0, wait - 2)
      await clock.advance(before)
      expect(bucket.wait()).toBeGreaterThan(0)
      await clock.advance(wait - before)
      expect(bucket.wait()).toBeLessThanOrEqual(1)
    }),
  )
})

test('a bucket keeps reserved tokens, and a token that is put back can be taken again', () => {
  fc.assert(
    fc.property(rates, fc.nat(19), (rate, others) => {
      const left = others % rate.max
      const bucket = new Bucket(new FakeClock(), rate)
      let taken = 0
      for (; bucket.wait(left) === 0; bucket.take()) taken += 1
      expect(taken).toBe(rate.max - left)
      for (; bucket.wait() === 0; bucket.take()) taken += 1
      expect(taken).toBe(rate.max)
      bucket.putBack()
      expect(bucket.wait()).toBe(0)
    }),
  )
})
