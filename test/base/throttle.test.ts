import { expect, test } from 'vitest'
import { Throttle } from '../../src/base/throttle.ts'
import { FakeClock } from '../support/fake-clock.ts'

function work(ms: number) {
  const clock = new FakeClock()
  let done = 0
  let ahead = 0
  const busy = { ...clock, elapsed: () => clock.elapsed() + ahead, after: clock.after }
  const sparing = new Throttle(busy, () => {
    done += 1
    ahead += ms
  })
  return { clock, sparing, done: () => done }
}

test('cheap work is done immediately for each request', () => {
  const { sparing, clock, done } = work(0.1)
  for (let i = 0; i < 100; i += 1) sparing.request()
  expect(done()).toBe(100)
  expect(clock.pending).toBe(0)
})

test('expensive work is done immediately for the first request, then once for all requests within fifty times its duration', async () => {
  const { sparing, clock, done } = work(50)
  for (let i = 0; i < 100; i += 1) sparing.request()
  expect(done()).toBe(1)
  await clock.advance(2499)
  expect(done()).toBe(1)
  await clock.advance(1)
  expect(done()).toBe(2)
  await clock.advance(60_000)
  expect(done()).toBe(2)
})

test('after the end nothing is done, and forced work is done immediately', async () => {
  const { sparing, clock, done } = work(50)
  sparing.request()
  sparing.request()
  sparing.stop()
  await clock.advance(60_000)
  expect(done()).toBe(1)
  sparing.now()
  sparing.now()
  expect(done()).toBe(3)
})
