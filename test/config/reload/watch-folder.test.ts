import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CHECK_MS, watchFolder } from '../../../src/config/hubs-dir.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { until } from '../../support/until.ts'

/** Watches a folder with a file that was read at `readAt`; by default, after the file was written. */
function watched(readAt = Number.POSITIVE_INFINITY) {
  const folder = temporaryFolder()
  const clock = new FakeClock()
  const ending = new AbortController()
  const state = { changes: 0, retries: 0, isApplied: true }
  const file = (name: string) => join(folder, name)
  writeFileSync(file('home.yaml'), 'url: http://192.168.1.20\n')
  const onChange = (isRetry: boolean) => {
    state[isRetry ? 'retries' : 'changes'] += 1
    return state.isApplied
  }
  const watching = watchFolder({ folder: () => folder, readAt }, onChange, clock, ending.signal)
  onTestFinished(async () => {
    ending.abort()
    await watching
  })
  /** Waits for a check of the folder. A check has ended when the wait for the next check begins. */
  const check = async (checks: number) => {
    await until('the wait for the next check', () => clock.waits.length === checks)
    await clock.advance(CHECK_MS)
    await until('the check', () => clock.waits.length === checks + 1)
  }
  return { state, file, check }
}

test('a file that is added, changed or removed is reported once each', async () => {
  const { state, file, check } = watched()
  await check(1)
  expect(state.changes).toBe(0)
  writeFileSync(file('attic.yaml'), 'url: http://192.168.1.21\n')
  await check(2)
  expect(state.changes).toBe(1)
  await check(3)
  expect(state.changes).toBe(1)
  writeFileSync(file('attic.yaml'), 'url: http://192.168.1.222\n')
  await check(4)
  expect(state.changes).toBe(2)
  rmSync(file('attic.yaml'))
  await check(5)
  expect(state.changes).toBe(3)
})

test('other files are ignored', async () => {
  const { state, file, check } = watched()
  writeFileSync(file('attic.yaml~'), 'an editor at work')
  writeFileSync(file('.attic.yaml.swp'), 'an editor at work')
  await check(1)
  expect(state.changes).toBe(0)
})

test('a file that was written after it was read, and before the first check, is reported', async () => {
  const { state, check } = watched(0)
  await check(1)
  expect(state.changes).toBe(1)
})

test('a change that is refused is tried again at each check until it is applied', async () => {
  const { state, file, check } = watched()
  state.isApplied = false
  await check(1)
  writeFileSync(file('attic.yaml'), 'url: http://192.168.1.21\n')
  await check(2)
  await check(3)
  await check(4)
  expect(state).toMatchObject({ changes: 1, retries: 2 })
  state.isApplied = true
  await check(5)
  await check(6)
  expect(state).toMatchObject({ changes: 1, retries: 3 })
})
