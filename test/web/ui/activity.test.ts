import { describe, expect, test } from 'vitest'
import { ActivityReader, happenings } from '../../../src/web/ui/app/live/activity.ts'

const START = Date.parse('2026-01-01T00:00:00.000Z')

/**
 * @param steps `1 crashed` is an event after a second, `1 RESTART` a command that ended, `1 RESTART!` one that failed;
 *   a third word is the id of another app
 * @returns of each happening the type of its lead, and those of all of its entries
 */
function fold(steps: string): string[] {
  const messages = steps.split(', ').map((step) => {
    const [seconds, what = '', app = 'x'] = step.split(' ')
    const at = new Date(START + Number(seconds) * 1000).toISOString()
    const command = what.replace('!', '')
    const ended = { command, hub: 'home', app, transaction: null, duration_ms: 5 }
    const answer = what.endsWith('!')
      ? { ok: false, ...ended, error: { code: 'hub_failed', message: 'No.', status: 500 } }
      : { ok: true, ...ended, data: null }
    const failed = { event_type: what, app, command: 'RESTART', code: 'hub_failed', transaction: null, at }
    const event = { event_type: what, app, changed: [], at, ...(what === 'restarted' && { reason: 'exception' }) }
    const isAnswer = command === command.toUpperCase()
    const payload = JSON.stringify(isAnswer ? answer : what === 'command_failed' ? failed : event)
    return { at, topic: isAnswer ? `b/home/app/${app}/result/${command}` : 'b/home/event', payload }
  })
  const entries = new ActivityReader('b').add([], messages)
  expect(entries).toHaveLength(messages.length)
  const nameOf = (one: (typeof entries)[number]) => (one.kind === 'event' ? one.event.event_type : one.answer.command)
  return happenings(entries).map(({ lead, entries: own }) => `${nameOf(lead)}: ${own.map(nameOf).join(' ')}`)
}

describe('one happening in the activity is', () => {
  test.each([
    ['a crash with what follows', '0 crashed, 0 stopped, 3 started', 'crashed: crashed stopped started'],
    ['a failed command with its event', '0 RESTART!, 0 command_failed', 'RESTART: RESTART command_failed'],
    ['a command with its effect', '0 RESTART, 1 started', 'RESTART: RESTART started'],
    [
      'a crash with the restart by the guardian',
      '0 crashed, 1 recovered, 1 RESTART, 1 restarted, 1 started',
      'crashed: crashed recovered RESTART restarted started',
    ],
    [
      'a restart by the guardian, long after the crash',
      '0 recovered, 0 RESTART, 0 restarted, 1 started',
      'restarted: recovered RESTART restarted started',
    ],
  ])('%s', (_, steps, wanted) => expect(fold(steps)).toEqual([wanted]))
})

describe('apart in the activity stay', () => {
  test.each([
    ['two crashes', '0 crashed, 1 crashed', ['crashed: crashed', 'crashed: crashed']],
    ['two commands', '0 RESTART, 0 RESTART', ['RESTART: RESTART', 'RESTART: RESTART']],
    ['a crash and a command of a client', '0 crashed, 1 RESTART', ['crashed: crashed', 'RESTART: RESTART']],
    ['a crash and a new version', '0 crashed, 1 updated', ['crashed: crashed', 'updated: updated']],
    ['what two apps do', '0 crashed, 0 stopped y', ['crashed: crashed', 'stopped: stopped']],
    ['what is ten seconds apart', '0 stopped, 10 started', ['stopped: stopped', 'started: started']],
    ['failures of two commands', '0 ENABLE!, 0 command_failed', ['ENABLE: ENABLE', 'command_failed: command_failed']],
    ['a success and a failure', '0 RESTART, 0 command_failed', ['RESTART: RESTART', 'command_failed: command_failed']],
  ])('%s', (_, steps, wanted) => expect(fold(steps)).toEqual(wanted))
})
