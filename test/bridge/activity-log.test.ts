import { expect, test } from 'vitest'
import { activityOf, lackingRights } from '../../src/bridge/activity-log.ts'
import { eventsOf } from '../../src/contract/events.ts'
import { type App, patchApp } from '../../src/hub/app.ts'
import { OPERATIONS } from '../../src/hub/operations.ts'
import { grants } from '../../src/hub/status.ts'

const app = (patch: Partial<App>) =>
  patchApp(undefined, 'com.example.bell', { name: 'Doorbell', crashed: false, ...patch })
const told = (before: App | undefined, after: App | undefined) => {
  const change = { id: 'com.example.bell', before, after }
  return activityOf({ ...change, events: eventsOf(change, 0) })
}

test.each([
  ['is added', undefined, app({}), ['Doorbell was added']],
  ['has an empty name', undefined, app({ name: ' ' }), ['com.example.bell was added']],
  ['is removed', app({}), undefined, ['Doorbell was removed']],
  [
    'crashes',
    app({}),
    app({ crashed: true, crash_message: 'connect\n EHOSTUNREACH 10.0.0.7:80' }),
    ['Doorbell crashed: connect EHOSTUNREACH 10.0.0.7:80'],
  ],
  ['crashes without a message', app({}), app({ crashed: true }), ['Doorbell crashed']],
  ['recovers', app({ crashed: true }), app({}), ['Doorbell has recovered']],
  ['is updated', app({ version: '1.0' }), app({ version: '1.1' }), ['Doorbell was updated from 1.0 to 1.1']],
  [
    'can be updated',
    app({ update_available: false }),
    app({ update_available: true, latest_version: '2.0' }),
    ['Doorbell: version 2.0 is available'],
  ],
  [
    'can be updated to an unknown version',
    app({}),
    app({ update_available: true }),
    ['Doorbell: an update is available'],
  ],
  ['uses more memory', app({ memory_bytes: 1 }), app({ memory_bytes: 2 }), []],
  ['stops', app({ state: 'running' }), app({ state: 'stopped' }), []],
] as const)('an app that %s is logged in plain words', (_, before, after, lines) => {
  expect(told(before, after)).toEqual(lines)
})

test('a line fits a terminal, however long the name of an app is', () => {
  const name = `Ding ${'x'.repeat(500)}`
  const [line = ''] = told(app({ name }), app({ name, crashed: true, crash_message: '\u001b[31m'.repeat(300) }))
  expect(line.length).toBeLessThan(110)
  expect(line).not.toMatch(/\p{Cc}/u)
})

test('a missing permission for commands that the configuration allows is named once', () => {
  const permits = (name: keyof typeof OPERATIONS) =>
    grants(['hub.app.readonly'], OPERATIONS[name].scope) ? 'yes' : 'forbidden'
  const policy = { allow: [], deny: [], read_only: false }
  const lines = lackingRights({ permits }, policy)
  expect(lines.find((line) => line.endsWith('lacks hub.app'))).toMatch(/^no .*\brestart\b/)
  expect(new Set(lines.map((line) => line.split(' ').at(-1))).size).toBe(lines.length)
  expect(lackingRights({ permits }, { ...policy, deny: ['restart'] }).join()).not.toContain('restart')
  expect(lackingRights({ permits: () => 'yes' }, policy)).toEqual([])
})
