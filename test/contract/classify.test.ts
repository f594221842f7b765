import { expect, test } from 'vitest'
import { hasCrashed, headOf, reasonOf } from '../../src/contract/classify.ts'
import { MAX_GUARD_MESSAGE } from '../../src/contract/guard.ts'
import { type AppPatch, patchApp } from '../../src/hub/app.ts'

test.each([
  ['CPU Warning Limit Reached', 'cpu_limit'],
  ['Too many memwarns', 'memory_limit'],
  ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory', 'memory_limit'],
  ['Exited with signal SIGKILL', 'killed'],
  ['App was unloaded by Homey core', 'unloaded'],
  ['Error: boom', 'exception'],
  ['TypeError: x is not a function\n    at App.onInit (/app/app.js:12:7)', 'exception'],
  ['Error: spawn was killed\n    at ChildProcess.exit (node:internal:1:1)', 'exception'],
  ['Traceback (most recent call last):\n  File "app.py", line 3, in on_init\nValueError: no', 'exception'],
  ['unhandledRejection', 'unknown'],
  ['', 'unknown'],
  [null, 'unknown'],
])('%j is classified as %s', (message, reason) => {
  expect(reasonOf(message)).toBe(reason)
})

test.each([
  [null, 'SIGKILL', 'killed'],
  ['App stopped', 'SIGKILL', 'killed'],
  ['Too many memwarns', 'SIGKILL', 'memory_limit'],
  [null, 'SIGTERM', 'unknown'],
])('%j with the exit signal %s is classified as %s', (message, signal, reason) => {
  expect(reasonOf(message, signal)).toBe(reason)
})

test('a message is shortened to one line, without half a character at its end', () => {
  expect(headOf('Error: boom\n    at x')).toBe('Error: boom at x')
  const long = headOf(`${'x'.repeat(MAX_GUARD_MESSAGE - 1)}😀😀`)
  expect(long).toBe('x'.repeat(MAX_GUARD_MESSAGE - 1))
})

const app = (patch: AppPatch) => patchApp(undefined, 'a', { enabled: true, state: 'running', crashed: false, ...patch })
const CRASHED = { state: 'crashed', crashed: true, crash_count: 1 } as const

test.each<[string, AppPatch | undefined, AppPatch, boolean]>([
  ['it crashes', {}, CRASHED, true],
  ['it crashes on an older hub', {}, { state: 'stopped', crashed: true }, true],
  ['it is crashed when first seen', undefined, CRASHED, true],
  ['it is still crashed', CRASHED, CRASHED, false],
  ['it has crashed once more between two reads', CRASHED, { ...CRASHED, crash_count: 2 }, true],
  ['the hub unloads it', {}, { state: 'stopped', crash_message: 'unloaded by Homey core' }, true],
  ['it stops and was counted', { crash_count: 1 }, { state: 'stopped', crash_count: 2 }, true],
  ['a user stops it', {}, { state: 'stopped' }, false],
  ['a user stops it after an earlier crash', { crash_message: 'x' }, { state: 'stopped', crash_message: 'x' }, false],
  ['a user disables it', {}, { enabled: false, state: 'stopped', crash_message: 'x' }, false],
  ['it is stopped when first seen', undefined, { state: 'stopped' }, false],
  ['it starts', { state: 'starting' }, {}, false],
])('whether an app has crashed if %s', (_, before, after, is) => {
  expect(hasCrashed(before && app(before), app(after))).toBe(is)
})
