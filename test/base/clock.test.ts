import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'

const DAY_MS = 24 * 60 * 60_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('waits the whole time before a task, even if it is longer than one timer of Node.js', () => {
  const task = vi.fn()
  systemClock.after(365 * DAY_MS, task)
  vi.advanceTimersByTime(365 * DAY_MS - 1)
  expect(task).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(task).toHaveBeenCalledOnce()
})

test('can cancel a task after any number of days', () => {
  const task = vi.fn()
  const cancel = systemClock.after(365 * DAY_MS, task)
  vi.advanceTimersByTime(100 * DAY_MS)
  cancel()
  vi.advanceTimersByTime(365 * DAY_MS)
  expect(task).not.toHaveBeenCalled()
})
