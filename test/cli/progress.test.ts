import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { progress, waiting } from '../../src/cli/progress.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function terminal(isTTY = true) {
  const written: string[] = []
  return { written, isTTY, write: (text: string) => written.push(text) > 0 }
}

test('a terminal shows the progress, at intervals and at the end', () => {
  const { written, ...stream } = terminal()
  const tell = progress('cleared', stream)
  for (let done = 1; done <= 100; done += 1) {
    vi.advanceTimersByTime(10)
    tell(done, 100)
  }
  expect(written).toEqual([
    '\rcleared 20 of 100',
    '\rcleared 40 of 100',
    '\rcleared 60 of 100',
    '\rcleared 80 of 100',
    '\rcleared 100 of 100\n',
  ])
})

test('a terminal shows what is being waited for if that takes long, and the line is removed', () => {
  const { written, ...stream } = terminal()
  const stop = waiting('waiting for the answer', stream)
  vi.advanceTimersByTime(1_999)
  expect(written).toEqual([])
  vi.advanceTimersByTime(2_001)
  expect(written.map((line) => line.replace('\r\u001b[K', ''))).toEqual(
    [2, 3, 4].map((s) => `waiting for the answer: ${s} s`),
  )
  stop()
  expect(written.at(-1)).toBe('\r\u001b[K')
  vi.advanceTimersByTime(10_000)
  expect(written).toHaveLength(4)
})

test('short work shows nothing, and nothing is written to a pipe', () => {
  const quick = terminal()
  progress('cleared', quick)(1, 1)
  waiting('waiting', quick)()
  const pipe = terminal(false)
  const tell = progress('cleared', pipe)
  waiting('waiting', pipe)
  vi.advanceTimersByTime(5_000)
  tell(1, 2)
  expect([...quick.written, ...pipe.written]).toEqual([])
})
