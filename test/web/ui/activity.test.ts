import { describe, expect, test } from 'vitest'
import {
  ActivityReader,
  dayBefore,
  dayOf,
  type Entry,
  groupsOf,
  rowsOf,
} from '../../../src/web/ui/app/live/activity.ts'

const START = Date.parse('2026-01-01T00:00:00.000Z')

/**
 * @param steps `1 crashed` is an event after a second, `1 RESTART` a command that ended, `1 RESTART!` one that failed,
 *   `1 RESTART~2` one that took two seconds; a third word is the id of another app, a fourth the name of another hub
 */
function entriesOf(steps: string): readonly Entry[] {
  const messages = steps.split(', ').map((step) => {
    const [seconds, what = '', app = 'x', hub = 'home'] = step.split(' ')
    const at = new Date(START + Number(seconds) * 1000).toISOString()
    const [command = '', took = '0.005'] = what.replace('!', '').split('~')
    const isAnswer = /^[A-Z]/.test(what)
    const ended = { command: command.toLowerCase(), hub, app, transaction: null, duration_ms: Number(took) * 1000 }
    const answer = what.endsWith('!')
      ? { ok: false, ...ended, error: { code: 'hub_failed', message: 'No.', status: 500 } }
      : { ok: true, ...ended, data: null }
    const failed = { event_type: what, app, command: 'restart', code: 'hub_failed', transaction: null, at }
    const event = { event_type: what, app, changed: [], at, ...(what === 'restarted' && { reason: 'exception' }) }
    const payload = JSON.stringify(isAnswer ? answer : what === 'command_failed' ? failed : event)
    return { at, topic: isAnswer ? `b/${hub}/app/${app}/result/${command}` : `b/${hub}/event`, payload }
  })
  const entries = new ActivityReader('b').add([], messages)
  expect(entries).toHaveLength(messages.length)
  return entries
}

const nameOf = (one: Entry) => (one.kind === 'event' ? one.event.event_type : one.answer.command.toUpperCase())

/** Returns each group as text: the type of its leading entry, followed by the types of all its entries. */
function fold(steps: string): string[] {
  return groupsOf(entriesOf(steps)).map(({ lead, entries: own }) => `${nameOf(lead)}: ${own.map(nameOf).join(' ')}`)
}

/** Returns each row as text: its type, with the number of occurrences and the apps if there are several. */
function list(entries: readonly Entry[]): string[] {
  return rowsOf(entries).map(({ lead, count, apps }) =>
    [nameOf(lead), count > 1 ? `×${count}` : '', apps.size > 1 ? [...apps].join('+') : '']
      .filter((part) => part)
      .join(' '),
  )
}

test.each([
  ['a crash with its consequences', '0 crashed, 0 stopped, 3 started', 'crashed: crashed stopped started'],
  ['a failed command with its event', '0 RESTART!, 0 command_failed', 'RESTART: RESTART command_failed'],
  ['a command with its effect', '0 RESTART, 1 started', 'RESTART: RESTART started'],
  [
    'a crash with the restart by the guardian',
    '0 crashed, 1 recovered, 1 RESTART, 1 restarted, 1 started',
    'crashed: crashed recovered RESTART restarted started',
  ],
  [
    'a command with its effects before its answer',
    '0 stopped, 1 started, 2 RESTART~2',
    'RESTART: stopped started RESTART',
  ],
  ['an update with its answer', '0 updated, 1 started, 2 INSTALL~3', 'updated: updated started INSTALL'],
  [
    'a slow answer with the update that it announces',
    '0 INSTALL, 1 updated, 2 started',
    'updated: INSTALL updated started',
  ],
  [
    'a restart by the guardian, long after the crash',
    '0 recovered, 0 RESTART, 0 restarted, 1 started',
    'restarted: recovered RESTART restarted started',
  ],
])('one group in the activity is %s', (_, steps, wanted) => expect(fold(steps)).toEqual([wanted]))

test.each([
  ['two crashes', '0 crashed, 1 crashed', ['crashed: crashed', 'crashed: crashed']],
  ['two commands', '0 RESTART, 0 RESTART', ['RESTART: RESTART', 'RESTART: RESTART']],
  ['a crash and a command of a client', '0 crashed, 1 RESTART', ['crashed: crashed', 'RESTART: RESTART']],
  ['a crash and a new version', '0 crashed, 1 updated', ['crashed: crashed', 'updated: updated']],
  ['events of two apps', '0 crashed, 0 stopped y', ['crashed: crashed', 'stopped: stopped']],
  ['events ten seconds apart', '0 stopped, 10 started', ['stopped: stopped', 'started: started']],
  ['failures of two commands', '0 ENABLE!, 0 command_failed', ['ENABLE: ENABLE', 'command_failed: command_failed']],
  ['a crash and a command right after it', '0 crashed, 0.06 RESTART', ['crashed: crashed', 'RESTART: RESTART']],
  ['a command and an earlier event', '0 stopped, 3 RESTART~2', ['stopped: stopped', 'RESTART: RESTART']],
  ['a read and an event during it', '0 stopped, 1 GET~2', ['stopped: stopped', 'GET: GET']],
  ['separate events after the clock was set back', '99 stopped, 0 started', ['stopped: stopped', 'started: started']],
  ['a success and a failure', '0 RESTART, 0 command_failed', ['RESTART: RESTART', 'command_failed: command_failed']],
])('separate groups in the activity are %s', (_, steps, wanted) => expect(fold(steps)).toEqual(wanted))

test.each([
  ['the same event each time', '0 crashed, 60 crashed, 120 crashed', ['crashed ×3']],
  ['the same event at the same time', '0 crashed, 0 crashed', ['crashed ×2']],
  ['the same event with its consequences', '0 crashed, 1 started, 60 crashed, 61 started', ['crashed ×2']],
  ['the same answer each time', '0 RESTART!, 60 RESTART!', ['RESTART ×2']],
  ['the same event, whatever other apps do', '0 crashed, 1 stopped y, 60 crashed', ['crashed ×2', 'stopped']],
  ['the same event, whatever another hub does', '0 crashed, 1 crashed x cabin, 60 crashed', ['crashed ×2', 'crashed']],
  [
    'the updates of several apps, whatever happens between them',
    '0 updated x, 1 started x, 30 crashed z, 60 updated y, 61 INSTALL~9 y, 62 updated w cabin',
    ['updated', 'updated ×2 x+y', 'crashed'],
  ],
])('one line of the activity is %s', (_, steps, wanted) => expect(list(entriesOf(steps))).toEqual(wanted))

test.each([
  ['different events of an app', '0 disabled, 60 enabled, 120 disabled', ['disabled', 'enabled', 'disabled']],
  ['a success and a failure', '0 RESTART, 60 RESTART!', ['RESTART', 'RESTART']],
  ['events more than an hour apart', '0 crashed, 3600 crashed', ['crashed', 'crashed']],
  ['updates more than ten minutes apart', '0 updated x, 600 updated y', ['updated', 'updated']],
  ['an update that failed', '0 updated x, 60 INSTALL! y', ['INSTALL', 'updated']],
  ['crashes before and after an update', '0 crashed, 60 updated, 120 crashed', ['crashed', 'updated', 'crashed']],
])('separate lines of the activity are %s', (_, steps, wanted) => expect(list(entriesOf(steps))).toEqual(wanted))

describe('the list of the activity', () => {
  test('is empty without entries, and one line with one', () => {
    expect(list([])).toEqual([])
    expect(list(entriesOf('0 crashed'))).toEqual(['crashed'])
  })

  test('has each of 1,000 entries once, newest first, also if the clock was set back between them', () => {
    const steps = Array.from({ length: 1_000 }, (_, i) => {
      return `${(i * 37_123) % 90_000} ${i % 3 === 0 ? 'RESTART' : 'crashed'} a${i % 7}`
    })
    // Read the steps in halves, because the reader keeps only 500 entries. The list has no limit.
    const halves = [steps.slice(0, 500), steps.slice(500)].flatMap((half) => entriesOf(half.join(', ')))
    const entries = halves.map((entry, number) => ({ ...entry, number }))
    const rows = rowsOf(entries)
    const listed = rows.flatMap((row) => row.entries.map(({ number }) => number))
    expect(listed.toSorted((one, other) => one - other)).toEqual(entries.map(({ number }) => number))
    expect(rows.map(({ at }) => at)).toEqual(rows.map(({ at }) => at).toSorted((one, other) => other - one))
  })

  test('shows the last of several entries with the same time first', () => {
    expect(list(entriesOf('0 stopped a, 0 crashed b, 0 enabled c'))).toEqual(['enabled', 'crashed', 'stopped'])
  })

  test('has the same event twice if it happened on two days', () => {
    const midnight = new Date(2026, 0, 2).getTime()
    const [first, second] = entriesOf('0 crashed, 60 crashed').map((entry, i) => ({
      ...entry,
      at: midnight - 30_000 + i * 60_000,
    }))
    if (first === undefined || second === undefined) throw new Error('there are two')
    expect(list([first, second])).toEqual(['crashed', 'crashed'])
    expect(list([first, { ...second, at: midnight - 1 }])).toEqual(['crashed ×2'])
  })
})

test('a day begins at midnight, and the days before and after it are found even if clocks change', () => {
  // Test a whole year, which contains both changes of the clock in any time zone.
  for (let date = 1; date <= 365; date += 1) {
    const day = new Date(2026, 0, date).getTime()
    expect(dayOf(day)).toBe(day)
    expect(dayOf(day - 1)).toBe(dayBefore(day))
    expect(dayBefore(day)).toBe(new Date(2026, 0, date - 1).getTime())
  }
})
