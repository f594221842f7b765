import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import type { Outcome } from '../../src/contract/answer.ts'
import { COMMANDS } from '../../src/contract/commands.ts'
import { MAX_HISTORY } from '../../src/contract/guard.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { configOf, early, HOUR, MINUTE, OK, refusal, SECOND, Stand, UPDATES } from './stand.ts'

describe('a watched app', () => {
  test('is one that the patterns name, unless they ignore it, or a command decides otherwise', async () => {
    const stand = new Stand('guard: { watch: ["com.*"], ignore: ["com.ignored"] }')
    stand.start('com.app', 'com.ignored', 'net.app', 'net.wanted', 'com.unwanted')
    stand.control('net.wanted', { enabled: true })
    stand.control('com.unwanted', { enabled: false })
    for (const id of stand.apps.keys()) stand.crash(id)
    await stand.clock.advance(10 * MINUTE)
    expect([...new Set(stand.restarted)].sort()).toEqual(['com.app', 'net.wanted'])
    expect(stand.state('com.ignored').state).toBe('off')
    expect(stand.state('com.unwanted')).toMatchObject({ state: 'off', last_crash: { reason: 'exception' } })
  })
})

const reads = Array.from({ length: 25 }, (_, index) => index)

test.each(reads)('an action that is due is taken although a timer is early by %i reads of the clock', async (count) => {
  const crashed = new Stand('guard: { watch: ["*"] }', early(count)).start('a').crash('a')
  await crashed.clock.advance(MINUTE)
  const schedule = 'guard: { watch: ["*"], time_zone: UTC, schedule: { "*": "0 13 * * *" } }'
  const scheduled = new Stand(schedule, early(count)).start('a')
  await scheduled.clock.advance(2 * HOUR)
  expect([crashed.restarted, scheduled.restarted]).toEqual([['a'], ['a']])
})

describe('an app that is not restarted', () => {
  test.each<[string, (stand: Stand) => unknown]>([
    ['was disabled', (stand) => stand.say('a', { enabled: false, state: 'stopped' })],
    ['was stopped without a sign of a crash', (stand) => stand.say('a', { state: 'stopped' })],
    ['crashed and was then disabled', (stand) => stand.crash('a').say('a', { enabled: false })],
    ['crashed and recovered by itself', (stand) => stand.crash('a').run('a')],
    ['crashed and is being updated', (stand) => stand.command('a', 'install', ['begun']).crash('a')],
    ['crashed while the broker is offline', (stand) => Object.assign(stand, { connected: false }).crash('a')],
    [
      'crashed while another bridge is active',
      (stand) => {
        stand.guard.standBy()
        stand.crash('a')
      },
    ],
    ['crashed while its hub is offline', (stand) => stand.setOnline(false).crash('a')],
    ['crashed while it is snoozed', (stand) => stand.control('a', { snooze: HOUR }).crash('a')],
  ])('%s', async (_, happens) => {
    const stand = new Stand().start('a')
    happens(stand)
    await stand.expectAfter(5 * MINUTE, [])
  })

  test.each([null, 'http'])('has just received a command, by MQTT or another way (%s)', async (by) => {
    const stand = new Stand().start('a').crash('a').command('a', 'disable', ['begun'], by)
    await stand.expectAfter(50 * SECOND, [])
    // A minute after the command, the guardian restarts the app, because the command has not stopped it.
    await stand.expectAfter(10 * SECOND, ['a'])
  })

  test('is disabled by a command while its restart waits for its turn', async () => {
    const stand = new Stand().start('a')
    const turn = Promise.withResolvers<void>()
    stand.answer = ({ isCurrent }) => turn.promise.then(() => (isCurrent() ? OK : refusal('expired')))
    stand.crash('a')
    await stand.clock.advance(10 * SECOND)
    stand.command('a', 'disable')
    turn.resolve()
    await stand.clock.advance(1)
    expect(stand.eventTypes).toEqual([])
    expect(stand.state('a')).toMatchObject({ restarts: 0, restarts_in_window: 0 })
    expect(stand.facts('a').history.map(({ what }) => what)).toEqual(['crash'])
  })
})

describe('an app is read again right before its restart, which is omitted', () => {
  test.each<[string, AppPatch]>([
    ['if it was disabled', { enabled: false, state: 'stopped', crashed: false }],
    ['if a user has stopped it', { state: 'stopped', crashed: false, crash_message: null }],
    ['if it runs again', { state: 'running', crashed: false, crash_message: null }],
    ['if it is starting', { state: 'starting', crashed: false, crash_message: null }],
    ['if it runs again with the flag of its crash', { state: 'running' }],
  ])('%s', async (_, found) => {
    const stand = new Stand().start('a').crash('a')
    stand.found = () => found
    await stand.clock.advance(HOUR)
    expect(stand.orders).toEqual([])
    expect(stand.facts('a').history.map(({ what }) => what)).toEqual(['crash'])
  })

  test('while it cannot be read or is missing, which is tried again with the back-off', async () => {
    const stand = new Stand('guard: { watch: ["*"], backoff_max: 60s }').start('a', 'b')
    const reads: number[] = []
    stand.found = (app) => {
      if (app === 'b') return {}
      reads.push(stand.clock.elapsed() / SECOND)
      return null
    }
    stand.startsApps()
    stand.crash('a').crash('b')
    await stand.clock.advance(4 * MINUTE)
    expect(reads).toEqual([10, 30, 70, 130, 190])
    // The failed reads of one app must not delay other apps.
    expect(stand.restarted).toEqual(['b'])
    stand.found = () => ({})
    await stand.clock.advance(MINUTE)
    expect(stand.restarted).toContain('a')
  })

  test('if something has changed while it was read', async () => {
    for (const ends of [
      (stand: Stand) => stand.guard.standBy(),
      (stand: Stand) => stand.control('a', { enabled: false }),
      (stand: Stand) => stand.setOnline(false),
      (stand: Stand) => stand.command('a', 'set-setting'),
    ]) {
      const stand = new Stand().start('a')
      const read = Promise.withResolvers<AppPatch>()
      stand.found = () => read.promise
      stand.crash('a')
      await stand.clock.advance(10 * SECOND)
      ends(stand)
      read.resolve({})
      await stand.clock.advance(30 * SECOND)
      expect(stand.orders).toEqual([])
    }
  })

  test('if a user stops it while its restart waits for its turn', async () => {
    const stand = new Stand().start('a')
    stand.answer = ({ isCurrent }) => {
      stand.say('a', { state: 'stopped', crashed: false, crash_message: null })
      return Promise.resolve(isCurrent() ? OK : refusal('expired'))
    }
    stand.crash('a')
    await stand.clock.advance(HOUR)
    expect(stand.eventTypes).toEqual([])
    expect(stand.orders).toHaveLength(1)
    expect(stand.state('a')).toMatchObject({ state: 'watching', restarts: 0 })
  })

  test('if it has waited for its turn for so long that the read is outdated', async () => {
    const stand = new Stand().start('a')
    stand.answer = async ({ isCurrent }) => {
      await new Promise<void>((resolve) => {
        stand.clock.after(6 * SECOND, resolve)
      })
      return isCurrent() ? OK : refusal('expired')
    }
    stand.crash('a')
    await stand.clock.advance(20 * SECOND)
    expect(stand.eventTypes).toEqual([])
    stand.answer = () => Promise.resolve(OK)
    await stand.clock.advance(2 * MINUTE)
    expect(stand.eventTypes).toEqual(['restarted'])
  })
})

const HUB_COMMANDS = COMMANDS.filter((row) => row.target !== 'bridge').flatMap((row) => [
  [row] as const,
  ...(row.reaches ? [[{ ...row, name: `${row.name} that reads`, write: false }] as const] : []),
])

test.each(HUB_COMMANDS)(
  'after $name an app is left alone for a minute if the command writes and is not for the guardian',
  async (row) => {
    const isOurs = row.needs === 'guard'
    const stand = new Stand().start('a').crash('a').command('a', row, ['begun'])
    await stand.clock.advance(5 * SECOND)
    stand.command('a', row, ['ended'])
    await stand.expectAfter(5 * SECOND, row.write && !isOurs ? [] : ['a'])
    await stand.expectAfter(55 * SECOND - 1, row.write && !isOurs ? [] : ['a'])
    await stand.clock.advance(1)
    expect(stand.restarted[0]).toBe('a')
  },
)

test.each([
  ['does not hold up a restart once it has ended', ['begun'], ['ended'], ['a']],
  ['holds up a restart while it runs', [], ['begun'], []],
] as const)('an install of which the guardian sees a part only while another bridge is active %s', async (...row) => {
  const [, seen, missed, restarted] = row
  const stand = new Stand().start('a').command('a', 'install', seen)
  stand.guard.standBy()
  stand.command('a', 'install', missed)
  stand.guard.activate(true)
  stand.crash('a')
  await stand.expectAfter(20 * SECOND, restarted)
})

describe('an app that runs with the flag of a crash', () => {
  const flag = { state: 'running', crashed: true, crash_message: 'Error: boom', crash_count: 1 } as const

  test('is restarted once, and again only for a higher count or a new message', async () => {
    const stand = new Stand().start('a').say('a', flag).say('a', { cpu_percent: 5 })
    await stand.clock.advance(10 * SECOND)
    expect(stand.restarted).toHaveLength(1)
    stand.say('a', { state: 'starting' })
    stand.say('a', { state: 'running' })
    stand.say('a', { cpu_percent: 7, memory_bytes: 1_048_576 })
    await stand.clock.advance(2 * HOUR)
    expect(stand.restarted).toHaveLength(1)
    stand.answer = () => {
      stand.say('a', { state: 'running' })
      return Promise.resolve(OK)
    }
    for (const [news, count] of [
      [{ crash_count: 2 }, 2],
      [{ crash_message: 'Error: another' }, 3],
      [{ state: 'crashed' }, 4],
    ] as const) {
      stand.say('a', news)
      await stand.clock.advance(HOUR)
      expect(stand.restarted).toHaveLength(count)
    }
  })

  test('has not crashed again for a bridge that starts', async () => {
    const before = new Stand().start('a').say('a', flag)
    await before.expectAfter(2 * MINUTE, ['a'])
    const after = (await before.next()).start().say('a', flag)
    await after.expectAfter(HOUR, [])
    // An app with the crash flag that was not restarted yet still waits for its restart.
    const waiting = new Stand().start('a').say('a', flag)
    const next = (await waiting.next()).start().say('a', flag)
    await next.expectAfter(10 * SECOND, ['a'])
  })
})

test('a version that an app goes back to does not reset its limit, also after a restart of the bridge', async () => {
  const fall = async (stand: Stand, version: string) => {
    stand.say('a', { version }).crash('a')
    await stand.clock.advance(MINUTE)
    stand.run('a')
  }
  const stand = new Stand('guard: { watch: ["*"], max_restarts: 1 }').start('a')
  for (const version of ['1.0.0', '2.0.0', '1.0.0', '2.0.0', '1.0.0']) await fall(stand, version)
  expect(stand.restarted).toHaveLength(2)
  const next = (await stand.next()).start().say('a', { version: '1.0.0' })
  for (const version of ['2.0.0', '1.0.0']) await fall(next, version)
  expect(next.restarted).toEqual([])
  await fall(next, '3.0.0')
  expect(next.restarted).toEqual(['a'])
})

describe('a clock that is set', () => {
  test.each([-26, -3, 3, 26])(
    'by %i hours changes neither the minute after a command nor a snooze nor the window',
    async (hours) => {
      const stand = new Stand('guard: { watch: ["*"], max_restarts: 1, window: 2m }').start('a', 'b', 'c')
      stand.control('b', { snooze: 10 * MINUTE })
      stand.crash('c')
      await stand.clock.advance(10 * SECOND)
      stand.run('c')
      stand.command('a', 'disable')
      stand.crash('a').crash('b')
      stand.clock.step(hours * HOUR)
      await stand.restartsAfter(MINUTE, ['c', 'a'])
      stand.run('a').crash('c')
      expect(stand.state('c').state).toBe('given_up')
      stand.control('c', { enabled: true })
      await stand.clock.advance(9 * MINUTE - 11 * SECOND)
      expect(stand.restarted).not.toContain('b')
      await stand.clock.advance(MINUTE)
      expect(stand.restarted).toContain('b')
    },
  )

  test.each([-5, 5])('by %i hours changes the published times, and a bridge that starts uses those', async (hours) => {
    const stand = new Stand().start('a').control('a', { snooze: HOUR }).crash('a')
    stand.clock.step(hours * HOUR)
    stand.read()
    const until = Date.parse(stand.state('a').snoozed_until ?? '')
    expect(until).toBe(stand.clock.now() + HOUR)
    const next = (await stand.next()).start('a').crash('a')
    await next.restartsAfter(HOUR + 10 * SECOND, ['a'])
  })

  test('ends quiet hours and reaches scheduled times according to its new time', async () => {
    const quiet = 'guard: { watch: ["*"], quiet_hours: "12:00-20:00", time_zone: UTC, schedule: { b: "0 21 * * *" } }'
    const stand = new Stand(quiet).start('a', 'b').crash('a')
    await stand.expectAfter(MINUTE, [])
    stand.clock.step(8 * HOUR)
    stand.read()
    await stand.expectAfter(SECOND, ['a'])
    stand.run('a')
    stand.clock.step(HOUR)
    await stand.expectAfter(MINUTE, ['a', 'b'])
  })
})

test.each<[string, (stand: Stand) => unknown]>([
  ['turned off for an app', (stand) => stand.control('a', { enabled: false })],
  ['snoozed for an app', (stand) => stand.control('a', { snooze: 10 * HOUR })],
])('a guardian that is %s during its restart continues with the other apps', async (_, happens) => {
  const stand = new Stand().start('a', 'b').crash('a')
  await stand.clock.advance(10 * SECOND)
  happens(stand)
  stand.crash('b')
  await stand.expectAfter(2 * MINUTE, ['a', 'b'])
})

test('a restart that fails while the bridge ends is not counted by the next run', async () => {
  const stand = new Stand().start('a')
  const answer = Promise.withResolvers<Outcome>()
  stand.answer = () => answer.promise
  stand.crash('a')
  await stand.clock.advance(10 * SECOND)
  expect(stand.state('a')).toMatchObject({ state: 'restarting', restarts: 1 })
  stand.guard.standBy()
  answer.resolve(refusal('expired'))
  await stand.clock.advance(1)
  expect(stand.state('a')).toMatchObject({ restarts: 0, restarts_in_window: 0 })
  expect(stand.facts('a').history.map(({ what }) => what)).toEqual(['crash'])
})

describe('an app that is restarted', () => {
  test('is one that the hub stopped, with evidence of that', async () => {
    const stand = new Stand().start('a').say('a', { state: 'stopped', crash_message: 'unloaded by Homey core' })
    await stand.expectAfter(10 * SECOND, ['a'])
    expect(stand.state('a').last_crash?.reason).toBe('unloaded')
  })

  test('waits twice as long each time, is given up at the limit, and that is reported once', async () => {
    const stand = new Stand('guard: { watch: ["*"], backoff_max: 60s, retry: [] }').start('a')
    const waits: number[] = []
    for (let i = 0; i < 8; i += 1) {
      stand.crash('a')
      const before = stand.restarted.length
      const at = stand.clock.now()
      const due = Date.parse(stand.state('a').next_restart_at ?? '')
      await stand.clock.advance(MINUTE)
      if (stand.restarted.length === before) break
      waits.push((due - at) / SECOND)
      stand.run('a')
    }
    expect(waits).toEqual([10, 20, 40, 60, 60])
    expect(stand.state('a')).toMatchObject({
      state: 'given_up',
      restarts: 5,
      restarts_in_window: 5,
      attention: ['exception'],
    })
    stand.crash('a')
    await stand.clock.advance(HOUR)
    expect(stand.eventTypes.filter((type) => type === 'gave_up')).toHaveLength(1)
    expect(stand.restarted).toHaveLength(5)
  })

  const tired = () => new Stand('guard: { watch: ["*"], max_restarts: 1 }').start('a').giveUp('a')

  test.each<[string, (stand: Stand) => unknown]>([
    ['has run for an hour', (stand) => stand.run('a').clock.advance(HOUR)],
    ['has a new version', (stand) => stand.say('a', { version: '1.0.1', state: 'running', crashed: false })],
    ['was restarted by command', (stand) => stand.command('a', 'restart')],
    ['is switched on again', (stand) => stand.control('a', { enabled: true })],
    ['is forgotten', (stand) => stand.control('a', { forget: true })],
  ])('starts again from zero when it %s', async (_, happens) => {
    const stand = await tired()
    await happens(stand)
    stand.run('a').crash('a')
    expect(stand.state('a')).toMatchObject({ state: 'waiting', retry_at: null })
    await stand.clock.advance(MINUTE + 10 * SECOND)
    expect(stand.restarted).toHaveLength(2)
  })

  test.each(['restart', 'enable'] as const)('stays given up if a command to %s it fails', async (command) => {
    const stand = await tired()
    stand.command('a', command, ['begun', 'ended'], null, false)
    expect(stand.state('a').state).toBe('given_up')
  })

  test('waits for two minutes after a hub that was offline at the start connects', async () => {
    const stand = new Stand().setOnline(false).start('a').crash('a')
    await stand.restartsAfter(2 * MINUTE, ['a'])
  })

  test('waits for two minutes after its hub reconnects, but not after the first connect', async () => {
    const stand = new Stand().start('a').setOnline(false).crash('a')
    await stand.clock.advance(MINUTE)
    stand.setOnline(true)
    await stand.restartsAfter(2 * MINUTE, ['a'])
  })

  test.each([
    ['at the usual time', '23:00-07:00', '2026-10-25T06:00:00Z'],
    ['at its first occurrence, if the clocks show it twice', '23:00-02:30', '2026-10-25T00:30:00Z'],
  ])('waits for the end of the quiet hours in the night when summer time ends: %s', async (_, hours, end) => {
    const stand = new Stand(`guard: { watch: ["*"], quiet_hours: "${hours}", time_zone: Europe/Berlin }`)
    await stand.clock.advance(Date.parse('2026-10-24T22:00:00Z') - stand.clock.now())
    stand.start('a').crash('a')
    await stand.restartsAfter(Date.parse(end) - stand.clock.now(), ['a'])
  })

  test('shows the end of the quiet hours exactly, although the clock of durations counts fractions', async () => {
    const fractional = (clock: Clock): Clock => ({
      now: () => clock.now(),
      elapsed: () => clock.elapsed() + 0.6,
      after: (ms, task) => clock.after(ms, task),
    })
    const stand = new Stand('guard: { watch: ["*"], quiet_hours: "12:00-13:00", time_zone: UTC }', fractional)
    stand.start('a').crash('a')
    await stand.clock.advance(11 * SECOND)
    expect(stand.state('a').next_restart_at).toBe('2026-01-05T13:00:00.000Z')
  })

  test('waits for the end of the quiet hours, across midnight', async () => {
    const stand = new Stand('guard: { watch: ["*"], quiet_hours: "12:00-07:00", time_zone: UTC }').start('a')
    stand.crash('a')
    await stand.expectAfter(19 * HOUR - SECOND, [])
    expect(stand.state('a')).toMatchObject({ state: 'waiting', next_restart_at: '2026-01-06T07:00:00.000Z' })
    await stand.expectAfter(SECOND, ['a'])
  })

  test('does not wait for another restarted app of its hub that a person has disabled', async () => {
    const stand = new Stand().start('a', 'b').crash('a').crash('b')
    await stand.expectAfter(20 * SECOND, ['a'])
    stand.say('a', { state: 'starting', crashed: false }).say('a', { state: 'stopped', enabled: false })
    await stand.expectAfter(1, ['a', 'b'])
    expect(stand.state('a')).toMatchObject({ state: 'watching', restarts: 1 })
  })

  test('waits until another restarted app of its hub runs again', async () => {
    const stand = new Stand().start('a', 'b').crash('a').crash('b')
    await stand.expectAfter(20 * SECOND, ['a'])
    stand.run('a')
    await stand.expectAfter(1, ['a', 'b'])
  })

  test.each(['hub_failed', 'hub_rejected', 'unknown_app'] as const)(
    'does not wait for another app whose restart the hub refuses: %s',
    async (code) => {
      const stand = new Stand().start('a', 'b')
      stand.answer = ({ app }) => Promise.resolve(app === 'a' ? refusal(code) : OK)
      stand.crash('a')
      await stand.clock.advance(SECOND)
      stand.crash('b')
      await stand.expectAfter(10 * SECOND, ['a', 'b'])
      expect(stand.state('a')).toMatchObject({ state: 'waiting', restarts: 1, restarts_in_window: 1 })
      stand.run('b')
      await stand.expectAfter(18 * SECOND, ['a', 'b'])
      await stand.expectAfter(2 * SECOND, ['a', 'b', 'a'])
      expect(stand.state('a')).toMatchObject({ restarts: 2, restarts_in_window: 2 })
    },
  )

  test('continues to wait for another app whose restart has an unknown outcome', async () => {
    const stand = new Stand().start('a', 'b')
    stand.answer = () => Promise.resolve(refusal('outcome_unknown'))
    stand.crash('a')
    await stand.clock.advance(SECOND)
    stand.crash('b')
    await stand.expectAfter(30 * SECOND, ['a'])
    await stand.clock.advance(MINUTE)
    expect(stand.restarted).toContain('b')
  })

  test('does not wait for another app that two lists show running, even without an event of its restart', async () => {
    const stand = new Stand().start('a', 'b')
    stand.say('a', { crashed: true, crash_message: 'Error: boom', crash_count: 1 })
    await stand.clock.advance(SECOND)
    stand.crash('b')
    await stand.clock.advance(12 * SECOND)
    stand.read()
    await stand.expectAfter(1, ['a'])
    stand.read()
    await stand.expectAfter(1, ['a', 'b'])
    expect(stand.state('a').state).toBe('restarting')
    stand.read(5)
    await stand.expectAfter(MINUTE, ['a', 'b'])
    expect(stand.state('a').state).toBe('watching')
  })
})

describe('an app that reports that it runs', () => {
  test.each<[string, string, (stand: Stand) => unknown]>([
    ['memory_limit', 'memory_limit: { a: 100MiB }', (stand) => stand.say('a', { memory_bytes: 101 * 1_048_576 })],
    ['cpu_limit', 'cpu_limit: { "*": 80 }', (stand) => stand.say('a', { cpu_percent: 80.1 })],
    ['silent', 'silent: ["*"]', (stand) => stand.say('a', { cpu_percent: null, memory_bytes: null })],
  ])('is restarted for %s after three reads in a row', async (reason, option, happens) => {
    const stand = new Stand(`guard: { watch: ["*"], ${option} }`).start('a', 'b')
    for (const id of ['a', 'b']) stand.say(id, { cpu_percent: 1, memory_bytes: 1_048_576 })
    stand.read()
    happens(stand)
    stand.read(2)
    stand.say('a', { cpu_percent: 1, memory_bytes: 1_048_576 })
    stand.read()
    happens(stand)
    stand.read(2)
    await stand.expectAfter(MINUTE, [])
    stand.read()
    await stand.expectAfter(10 * SECOND, ['a'])
    expect(stand.events).toMatchObject([{ event_type: 'restarted', reason }])
    expect(stand.facts('a').history).toMatchObject([{ what: 'restart', reason }])
  })

  test('and has run for hours is given up like any other, even if no list shows its restarts', async () => {
    const option = 'memory_limit: { a: 100MiB }, max_restarts: 3, for_reads: 1, window: 1h'
    const stand = new Stand(`guard: { watch: ["*"], ${option} }`).start('a')
    await stand.pass(3)
    stand.say('a', { memory_bytes: 101 * 1_048_576 })
    for (let minute = 0; minute < 30; minute += 1) {
      stand.read()
      await stand.clock.advance(MINUTE)
    }
    expect(stand.restarted).toHaveLength(3)
    expect(stand.eventTypes).toEqual(['restarted', 'restarted', 'restarted', 'gave_up'])
    // The guardian stops counting the restarts after the app has run well for an hour.
    stand.say('a', { memory_bytes: 1_048_576 })
    await stand.pass(2)
    expect(stand.state('a')).toMatchObject({ state: 'watching', restarts_in_window: 0 })
  })

  test('but whose usage the hub no longer reports only needs attention, until the usage is reported again', async () => {
    const stand = new Stand('guard: { watch: ["*"], silent: ["b"], probe: { c: "/" } }').start('a', 'b', 'c', 'd')
    const say = (ids: readonly string[], cpu_percent: number | null) => {
      for (const id of ids) stand.say(id, { cpu_percent })
    }
    say(['a', 'b', 'c', 'd'], 1)
    stand.read()
    say(['a', 'b', 'c'], null)
    stand.read(3)
    await stand.expectAfter(HOUR, ['b'])
    expect(stand.state('a')).toMatchObject({ state: 'watching', attention: ['silent'] })
    say(['a', 'b'], 2)
    stand.read()
    expect(stand.state('a').attention).toEqual([])
    // Missing usage must not hide other reasons for attention.
    stand.ask = () => null
    for (let reads = 0; reads < 5; reads += 1) {
      stand.read()
      await stand.clock.advance(10 * SECOND)
    }
    expect(stand.events.find(({ app }) => app === 'c')).toMatchObject({ event_type: 'restarted', reason: 'probe' })
  })

  test('is restarted when none of its values has changed for too long', async () => {
    const stand = new Stand('guard: { watch: ["*"], change_limit: { a: 1h } }').start('a', 'b')
    await stand.clock.advance(HOUR + SECOND)
    stand.read()
    await stand.clock.advance(10 * SECOND)
    expect(stand.events).toMatchObject([{ event_type: 'restarted', app: 'a', reason: 'probe' }])
  })

  test('is left alone for as much longer as its hub was offline', async () => {
    const stand = new Stand('guard: { watch: ["*"], change_limit: { a: 1h } }').start('a')
    await stand.clock.advance(20 * MINUTE)
    stand.setOnline(false)
    await stand.clock.advance(HOUR)
    stand.setOnline(true).read()
    await stand.clock.advance(40 * MINUTE)
    stand.read()
    await stand.expectAfter(SECOND, [])
    stand.read()
    await stand.expectAfter(10 * SECOND, ['a'])
  })

  test('but whose restarts no list shows is left alone for the same time after each', async () => {
    const stand = new Stand('guard: { watch: ["*"], change_limit: { a: 1h } }').start('a')
    for (let minute = 0; minute < 190; minute += 1) {
      await stand.clock.advance(MINUTE)
      stand.read()
    }
    expect(stand.restarted).toHaveLength(3)
  })

  test.each<[string, string, number | null | undefined, boolean]>([
    ['answers another status', '/status', 500, true],
    ['does not answer', '/status', null, true],
    ['answers as expected', '/status', 204, false],
    ['answers with the configured status', '/login 401', 401, false],
    ['could not be reached', '/status', undefined, false],
  ])('and whose web API %s', async (_, probe, status, isRestarted) => {
    const stand = new Stand(`guard: { watch: ["*"], probe: { a: "${probe}" } }`).start('a', 'b')
    const asked: string[] = []
    stand.ask = (app, path) => {
      asked.push(`${app} ${path}`)
      return status
    }
    for (let reads = 0; reads < 4; reads += 1) {
      expect(stand.restarted).toEqual([])
      stand.read()
      await stand.clock.advance(10 * SECOND)
    }
    expect(asked.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => `a ${probe.split(' ')[0]}`))
    expect(stand.restarted).toEqual(isRestarted ? ['a'] : [])
    if (isRestarted) expect(stand.events).toMatchObject([{ event_type: 'restarted', reason: 'probe' }])
  })

  test('is left alone if the hub reports no usage of any app', async () => {
    const stand = new Stand('guard: { watch: ["*"], silent: ["*"] }').start('a', 'b').read(10)
    for (const id of ['a', 'b']) stand.say(id, { cpu_percent: 1 })
    stand.read()
    for (const id of ['a', 'b']) stand.say(id, { cpu_percent: null })
    stand.read(10)
    await stand.expectAfter(MINUTE, [])
  })
})

describe('restarts by schedule', () => {
  test('are made one after the other, and not for apps that are disabled, snoozed or not running', async () => {
    const stand = new Stand('guard: { watch: ["*"], schedule: { "*": "0 14 * * *" }, time_zone: UTC }')
    stand.start('a', 'b', 'disabled', 'crashed', 'rests')
    stand.say('disabled', { enabled: false, state: 'stopped' })
    stand.control('rests', { snooze: 24 * HOUR })
    await stand.expectAfter(2 * HOUR - SECOND, [])
    await stand.expectAfter(2 * SECOND, ['a'])
    stand.say('a', { state: 'starting' }).run('a')
    await stand.clock.advance(SECOND)
    expect(stand.restarted.slice(0, 2)).toEqual(['a', 'b'])
    expect(stand.events[0]).toMatchObject({ event_type: 'restarted', reason: 'schedule' })
  })

  const often = (rest = '') => `guard: { watch: ["*"], schedule: { a: "*/5 * * * *" }, time_zone: UTC${rest} }`

  test('do not count against the limit of an app, also across a restart of the bridge', async () => {
    const stand = new Stand(often()).start('a').startsApps()
    await stand.clock.advance(HOUR)
    expect([stand.restarted.length, stand.eventTypes.includes('gave_up')]).toEqual([12, false])
    expect(stand.state('a')).toMatchObject({ state: 'watching', restarts: 12, restarts_in_window: 0 })
    const next = (await stand.next()).start('a').startsApps()
    next.crash('a')
    expect(next.state('a')).toMatchObject({ state: 'waiting', restarts_in_window: 0 })
    await next.restartsAfter(10 * SECOND, ['a'])
  })

  test('do not make the guardian give up on an app that runs again after as many crashes as allowed', async () => {
    const stand = new Stand(often(', backoff_max: 10s')).start('a').startsApps()
    for (let i = 0; i < 5; i += 1) {
      stand.crash('a')
      await stand.clock.advance(10 * SECOND)
    }
    await stand.clock.advance(5 * MINUTE)
    expect([stand.restarted.length, stand.state('a').state]).toEqual([6, 'watching'])
    stand.crash('a')
    expect(stand.state('a').state).toBe('given_up')
  })

  test('continue after a restart of the bridge, and are not made again', async () => {
    const stand = new Stand(often()).start('a').startsApps()
    await stand.clock.advance(3 * MINUTE)
    stand.crash('a')
    await stand.clock.advance(10 * SECOND)
    stand.answer = ({ app }) => {
      stand.say(app, { state: 'starting' })
      return Promise.resolve(OK)
    }
    await stand.clock.advance(2 * MINUTE)
    const next = await stand.next()
    next.guard.activate(true)
    next.say('a', { state: 'starting' }).setOnline(true)
    await next.clock.advance(40 * SECOND)
    expect([next.restarted, next.state('a').state]).toEqual([[], 'restarting'])
  })

  test('count against the budget of the hub', async () => {
    const stand = new Stand(often(', hub_max_restarts: 3')).start('a').startsApps()
    await stand.clock.advance(30 * MINUTE)
    expect([stand.restarted.length, stand.state('a').state]).toEqual([3, 'waiting'])
    await stand.clock.advance(30 * MINUTE)
    expect(stand.restarted.length).toBe(6)
  })

  test('do not prevent that an app that crashes after each of them is given up', async () => {
    const stand = new Stand(often(', retry: []')).start('a')
    stand.answer = ({ app }) => {
      stand.say(app, { state: 'starting' }).run(app).crash(app)
      return Promise.resolve(OK)
    }
    await stand.clock.advance(3 * HOUR)
    expect([stand.restarted.length, stand.state('a').state]).toEqual([6, 'given_up'])
  })

  test('are left out in quiet hours', async () => {
    const stand = new Stand(
      'guard: { watch: ["*"], schedule: { a: "0 14 * * *" }, quiet_hours: "13:00-15:00", time_zone: UTC }',
    )
    stand.start('a')
    await stand.expectAfter(5 * HOUR, [])
  })

  test('are left out if the clock is set to hours after their time, as on a machine that was suspended', async () => {
    const stand = new Stand('guard: { watch: ["*"], schedule: { a: "0 14 * * *" }, time_zone: UTC }').start('a')
    stand.clock.step(5 * HOUR)
    await stand.expectAfter(2 * MINUTE, [])
    await stand.expectAfter(21 * HOUR, ['a'])
  })

  test('keep the hour of the time zone when the clocks change', async () => {
    const stand = new Stand('guard: { watch: ["*"], schedule: { a: "0 4 * * *" }, time_zone: Europe/Berlin }')
    await stand.clock.advance(Date.parse('2026-03-27T12:00:00Z') - stand.clock.now())
    stand.start('a')
    const times: string[] = []
    stand.answer = () => {
      times.push(new Date(stand.clock.now()).toISOString())
      stand.say('a', { state: 'starting' }).run('a')
      return Promise.resolve(OK)
    }
    await stand.clock.advance(3 * 24 * HOUR)
    expect(times.map((time) => time.slice(5, 16))).toEqual(['03-28T03:00', '03-29T02:00', '03-30T02:00'])
  })
})

describe('updates in a window', () => {
  const offered = { update_available: true, latest_version: '2.0.0' } as const
  const commands = (stand: Stand) => stand.orders.map(({ app, command }) => `${app} ${command}`)
  /** Advances the clock, and expects exactly these commands so far. */
  const commandsAfter = async (stand: Stand, ms: number, expected: readonly string[]) => {
    await stand.clock.advance(ms)
    expect(commands(stand)).toEqual(expected)
  }

  test('are made one at a time, each confirmed by the version that the hub reports', async () => {
    const stand = new Stand(`${UPDATES} }`).start('a', 'b', 'disabled', 'off')
    for (const id of stand.apps.keys()) stand.say(id, offered)
    stand.say('disabled', { enabled: false })
    stand.control('off', { enabled: false })
    stand.read()
    await commandsAfter(stand, HOUR - SECOND, [])
    await commandsAfter(stand, MINUTE, ['a install'])
    stand.say('a', { version: '2.0.0', update_available: false, latest_version: null })
    expect(stand.eventTypes).toEqual(['updated_by_guard'])
    await commandsAfter(stand, MINUTE, ['a install', 'b install'])
    expect(stand.events).toMatchObject([{ event_type: 'updated_by_guard', app: 'a', from: '1.0.0', to: '2.0.0' }])
    await stand.clock.advance(24 * HOUR)
    expect(stand.events[1]).toMatchObject({ event_type: 'update_failed', app: 'b', from: '1.0.0', to: '2.0.0' })
  })

  test.each<[string, (stand: Stand) => unknown]>([
    ['uninstalled', (stand) => stand.remove('a')],
    ['hidden by the configuration', (stand) => stand.remove('a', true)],
  ])('wait only a minute for an app that is %s during its update', async (_, happens) => {
    const stand = new Stand(`${UPDATES} }`).start('a', 'b').say('a', offered).say('b', offered).read()
    await commandsAfter(stand, HOUR, ['a install'])
    happens(stand)
    await commandsAfter(stand, MINUTE - SECOND, ['a install'])
    await commandsAfter(stand, SECOND, ['a install', 'b install'])
    expect(stand.events).toMatchObject([
      { event_type: 'update_failed', app: 'a', message: 'The app is no longer listed.' },
    ])
  })

  test('are confirmed for an app that is missing for a moment during its update', async () => {
    const stand = new Stand(`${UPDATES} }`).start('a').say('a', offered).read()
    await commandsAfter(stand, HOUR, ['a install'])
    stand.remove('a')
    await stand.clock.advance(30 * SECOND)
    stand.say('a', { version: '2.0.0' })
    await commandsAfter(stand, MINUTE, ['a install'])
    expect(stand.events).toMatchObject([{ event_type: 'updated_by_guard', app: 'a', from: '1.0.0', to: '2.0.0' }])
  })

  test('delay a restart of another app on the same hub for a minute', async () => {
    const stand = new Stand(`${UPDATES} }`).start('a', 'b').say('a', offered).read()
    await commandsAfter(stand, HOUR, ['a install'])
    stand.say('a', { state: 'starting' }).crash('b')
    await commandsAfter(stand, MINUTE - SECOND, ['a install'])
    // After a minute, other apps may be restarted although the update has not ended.
    await commandsAfter(stand, SECOND, ['a install', 'b restart'])
  })

  test('delay a restart of their own app until they end', async () => {
    const stand = new Stand(`${UPDATES} }`).start('a').say('a', offered).read()
    await stand.clock.advance(HOUR)
    stand.crash('a')
    await commandsAfter(stand, 9 * MINUTE, ['a install'])
    await commandsAfter(stand, 2 * MINUTE, ['a install', 'a restart'])
  })

  test('wait until a version has been on offer for the configured days, also across a restart of the bridge', async () => {
    const stand = new Stand(`${UPDATES}, hold_days: 2 }`).start('a').say('a', offered).read()
    await stand.pass(26)
    expect(commands(stand)).toEqual([])
    const next = await stand.next()
    // Advance the new bridge's clock by more than a year.
    await next.clock.advance(500 * 24 * HOUR)
    next.guard.activate(true)
    next.say('a', offered)
    next.setOnline(true)
    next.read()
    await next.pass(21)
    expect(commands(next)).toEqual([])
    await next.pass(5)
    expect(next.orders).toMatchObject([{ app: 'a', command: 'install', payload: { version: '2.0.0' } }])
  })

  test.each<[string, (stand: Stand) => unknown]>([
    ['does not report the version on offer', (stand) => stand.say('a', { latest_version: null })],
    ['does not accept a version', (stand) => Object.assign(stand, { acceptsVersion: false })],
  ])('with a hold leave out the apps of a hub that %s, which is logged once', async (_, is) => {
    const stand = new Stand(`${UPDATES}, hold_days: 1 }`).start('a').say('a', offered)
    is(stand)
    stand.read()
    await stand.pass(5 * 24)
    expect(stand.orders).toEqual([])
    expect(stand.warnings).toEqual([expect.stringContaining('updates.hold_days')])
  })

  test('report the installed version, warn of a version that was not held, and install no others on that hub', async () => {
    const stand = new Stand(`${UPDATES}, hold_days: 1 }`).start('a', 'b')
    stand.answer = () => {
      stand.say('a', { version: '2.0.1', update_available: false, latest_version: null })
      return Promise.resolve(refusal('hub_failed'))
    }
    stand.say('a', offered).read()
    await stand.pass(30)
    stand.say('b', offered)
    await stand.pass(60)
    expect(commands(stand)).toEqual(['a install'])
    expect(stand.events).toMatchObject([{ event_type: 'updated_by_guard', from: '1.0.0', to: '2.0.1' }])
    expect(stand.warnings[0]).toContain('a version other than')
  })

  test.each<[string, (stand: Stand) => unknown, hours?: number]>([
    [
      'the time for which the hub was offline',
      async (stand) => {
        stand.setOnline(false)
        await stand.clock.advance(5 * 24 * HOUR)
        stand.setOnline(true)
      },
    ],
    ['the days by which the clock is set', (stand) => stand.clock.step(5 * 24 * HOUR)],
    ['the time of another version', (stand) => stand.say('a', { latest_version: '2.0.1' }), 20],
    [
      'the time of an offer that was withdrawn and made again',
      (stand) => stand.say('a', { update_available: false, latest_version: null }).say('a', offered),
      20,
    ],
  ])('do not count %s towards the hold', async (_, happens, hours = 0) => {
    const stand = new Stand(`${UPDATES}, hold_days: 1 }`).start('a').say('a', offered).read()
    await stand.pass(hours)
    await happens(stand)
    stand.read()
    await stand.pass(15)
    expect(stand.orders).toEqual([])
    await stand.pass(48)
    expect(stand.orders[0]).toMatchObject({ command: 'install' })
  })

  test('do not begin without the backup that configuration requires, and the reason is reported', async () => {
    const stand = new Stand(`${UPDATES}, backup: true }`).start('a')
    stand.backup = () => Promise.resolve('This hub has no such operation.')
    stand.say('a', offered).read()
    await commandsAfter(stand, 2 * HOUR, [])
    expect(stand.events).toMatchObject([
      { event_type: 'update_failed', message: 'No backup, so no update: This hub has no such operation.' },
    ])
  })

  test.each<[string, (stand: Stand) => unknown]>([
    ['snoozed', (stand) => stand.control('a', { snooze: HOUR })],
    ['switched off', (stand) => stand.control('a', { enabled: false })],
    ['disabled', (stand) => stand.say('a', { enabled: false, state: 'stopped' })],
  ])('are not made for an app that is %s while the backup is made', async (_, happens) => {
    const stand = new Stand(`${UPDATES}, backup: true }`).start('a')
    const backup = Promise.withResolvers<undefined>()
    let begun = false
    stand.backup = () => {
      begun = true
      return backup.promise
    }
    stand.say('a', offered).read()
    await stand.clock.advance(2 * HOUR)
    expect(begun).toBe(true)
    happens(stand)
    backup.resolve(undefined)
    await commandsAfter(stand, MINUTE, [])
    expect(stand.events.map(({ event_type }) => event_type)).toContain('update_failed')
  })

  test('do not begin in quiet hours', async () => {
    const quiet = UPDATES.replace('["*"]', '["*"], quiet_hours: "12:30-16:00", time_zone: UTC')
    const stand = new Stand(`${quiet} }`).start('a').say('a', offered).read()
    await stand.clock.advance(2 * HOUR)
    stand.read()
    expect(commands(stand)).toEqual([])
  })

  test.each([
    [true, [{ autoupdate: false }]],
    [false, []],
  ])('that make an app crash three times in half an hour are bad, and switched off: %s', async (isOff, sent) => {
    const stand = new Stand(`${UPDATES}, off_when_bad: ${isOff} }`).start('a').say('a', { autoupdate: true })
    stand.say('a', { version: '1.1.0' })
    for (let i = 0; i < 4; i += 1) {
      stand.crash('a')
      await stand.clock.advance(MINUTE)
      stand.run('a')
    }
    expect(stand.events.filter(({ event_type }) => event_type === 'bad_update')).toMatchObject([
      { from: '1.0.0', to: '1.1.0' },
    ])
    const updates = stand.orders.filter(({ command }) => command === 'update')
    expect(updates.map(({ payload }) => payload)).toEqual(sent)
    expect(stand.state('a').attention).toEqual(['exception'])
  })
})

describe('the state on the broker', () => {
  test.each([
    'x',
    '{}',
    '[]',
    'null',
    '5',
    `"${'x'.repeat(100_000)}"`,
    '{"state":"given_up","restarts":-1,"restarts_in_window":1e300,"next_restart_at":"never","attention":["__proto__"]}',
    '{"state":"snoozed","restarts":1,"restarts_in_window":1,"next_restart_at":null,"snoozed_until":"2026-01-01T00:00:00+02","last_crash":null,"memory_trend_bytes_per_hour":null,"attention":[]}',
    '{"enabled":null,"offered":null,"updated":{"at":"2026-01-01T00:00:00+02","from":null,"to":null,"crashes":0}}',
    JSON.stringify({ enabled: 'yes', offered: { since: 'now' }, updated: [] }),
    JSON.stringify(Array.from({ length: MAX_HISTORY + 1 }, () => ({ at: '2026-01-01T00:00:00.000Z' }))),
  ])('is ignored if it is invalid: %.40s', async (text) => {
    const stand = new Stand()
    for (const name of ['guard', 'history', 'guardMemory', 'constructor']) stand.guard.learn(name, 'home', 'a', text)
    stand.start('a')
    expect(stand.state('a')).toMatchObject({ state: 'watching', restarts: 0, last_crash: null })
    expect(stand.facts('a').history).toEqual([])
    stand.crash('a')
    await stand.expectAfter(10 * SECOND, ['a'])
  })

  test.each<[string, number, (stand: Stand) => unknown]>([
    ['the minute after a command', MINUTE, (stand) => stand.command('a', 'disable')],
    ['the two minutes after the hub came back', 2 * MINUTE, (stand) => stand.setOnline(false).setOnline(true)],
  ])('keeps %s in a bridge that starts again, but only if the published time includes them', async (_, wait, begin) => {
    for (const [ranFor, due] of [
      [9 * SECOND, 10 * SECOND],
      [11 * SECOND, wait],
    ] as const) {
      const before = new Stand().start('a')
      begin(before)
      before.crash('a')
      await before.clock.advance(ranFor)
      const after = await before.next()
      after.guard.activate(true)
      after.say('a', { state: 'crashed', crashed: true, crash_message: 'Error: boom', crash_count: 1 })
      after.setOnline(true)
      await after.restartsAfter(due - ranFor, ['a'])
    }
  })

  test('is used: a wait continues, and the counts still apply', async () => {
    const before = new Stand().start('a')
    for (let i = 0; i < 3; i += 1) {
      before.crash('a')
      await before.clock.advance(MINUTE)
      if (i < 2) before.run('a')
    }
    const { state, history } = before.facts('a')
    const after = await before.next()
    after.guard.learn('guard', 'home', 'a', JSON.stringify({ ...state, state: 'waiting' }))
    after.guard.activate(true)
    after.say('a', { state: 'crashed', crashed: true, crash_message: 'Error: boom', crash_count: 3 })
    expect(after.facts('a').history).toEqual(history)
    after.setOnline(true)
    await after.clock.advance(SECOND)
    after.run('a').crash('a')
    const wait = Date.parse(after.state('a').next_restart_at ?? '') - after.clock.now()
    expect(wait).toBe(10 * SECOND * 2 ** after.state('a').restarts_in_window)
  })
})

test('saved state of an app is kept until its hub has been read, however often the connection to the broker is lost before', () => {
  const stand = new Stand()
  const memory = JSON.stringify({ enabled: false, offered: null, updated: null })
  stand.guard.learn('guardMemory', 'home', 'a', memory)
  stand.guard.activate(true)
  stand.guard.learn('guardMemory', 'home', 'a', memory)
  stand.guard.activate(false)
  stand.say('a', {})
  expect(stand.state('a').state).toBe('off')
})

test('a reload that turns the guardian on for the first time finds the known apps, including those that crashed before', async () => {
  const stand = new Stand('guard: { watch: [] }').start('a', 'b', 'c').crash('a').crash('b').run('b')
  stand.live.value = configOf('guard: { watch: ["*"] }')
  stand.guard.reconfigured()
  await stand.expectAfter(10 * SECOND, ['a'])
  expect(['a', 'b', 'c'].map((id) => stand.state(id).state)).not.toContain('off')
})

test.each(['[]', '["*"]'])(
  'a reload that turns the guardian on, which began with %s, restarts no app that runs again',
  async (watch) => {
    const stand = new Stand(`guard: { watch: ${watch} }`).start('a').crash('a')
    await stand.clock.advance(10 * SECOND)
    const before = stand.restarted
    // This hub keeps the crash flag.
    stand.say('a', { state: 'running' })
    for (const now of ['[]', '["*"]']) {
      stand.live.value = configOf(`guard: { watch: ${now} }`)
      stand.guard.reconfigured()
    }
    await stand.expectAfter(HOUR, before)
  },
)

test('a reload changes the watched apps immediately', async () => {
  const stand = new Stand('guard: { watch: ["b"] }').start('a').crash('a')
  await stand.expectAfter(MINUTE, [])
  stand.live.value = configOf('guard: { watch: ["a"] }')
  stand.guard.reconfigured()
  await stand.expectAfter(10 * SECOND, ['a'])
})

test.each([
  ['quiet hours', 'quiet_hours: "12:00-20:00", time_zone: UTC', 'quiet_hours: null'],
  [
    'quiet hours that now end earlier',
    'quiet_hours: "12:00-20:00", time_zone: UTC',
    'quiet_hours: "12:00-12:05", time_zone: UTC',
  ],
  ['the limit of the hub', 'hub_max_restarts: 1, window: 8h', 'window: 8h'],
])('a restart postponed by %s is checked again after a reload or a restart of the bridge', async (_, was, is) => {
  const yaml = (options: string) => `guard: { watch: ["*"], ${options} }`
  const stand = new Stand(yaml(was)).start('a', 'b').startsApps().crash('b')
  await stand.clock.advance(MINUTE)
  stand.crash('a')
  await stand.clock.advance(MINUTE)
  const waits = stand.state('a').next_restart_at
  const next = (await stand.next(yaml(was))).start()
  for (const [id, app] of stand.apps) next.say(id, app)
  await next.clock.advance(20 * MINUTE)
  expect(next.state('a')).toMatchObject({ state: 'waiting', next_restart_at: waits })

  const changed = (await stand.next(yaml(is))).start().startsApps()
  for (const [id, app] of stand.apps) changed.say(id, app)
  await changed.clock.advance(11 * MINUTE)
  expect(changed.restarted).toContain('a')

  stand.live.value = configOf(yaml(is))
  stand.guard.reconfigured()
  await stand.clock.advance(4 * MINUTE)
  expect(stand.restarted).toContain('a')
})

test('a restart has the reason that the hub reports, even if a command has cleared the crash meanwhile', async () => {
  const stand = new Stand().start('a').crash('a').control('a', { forget: true })
  await stand.clock.advance(10 * SECOND)
  expect(stand.events).toMatchObject([{ event_type: 'restarted', reason: 'exception' }])
})

describe('an app whose history is cleared during its restart', () => {
  test.each<[string, AppPatch]>([
    ['reports a crash', { state: 'starting' }],
    ['reports no crash', { state: 'starting', crashed: false, crash_message: null }],
  ])('is not restarted again while it starts and %s', async (_, starting) => {
    const stand = new Stand().start('a').crash('a')
    await stand.clock.advance(10 * SECOND)
    stand.say('a', starting).control('a', { forget: true })
    expect(stand.state('a')).toMatchObject({ state: 'restarting', restarts: 0, restarts_in_window: 0 })
    await stand.expectAfter(30 * SECOND, ['a'])
    expect(stand.run('a').state('a').state).toBe('watching')
  })

  test('is not restarted again if its memory was above the limit', async () => {
    const stand = new Stand('guard: { watch: ["*"], for_reads: 1, memory_limit: { a: 100MiB } }').start('a')
    stand.say('a', { memory_bytes: 2 ** 30 }).read()
    await stand.clock.advance(10 * SECOND)
    stand.control('a', { forget: true }).say('a', { cpu_percent: 1 })
    expect(stand.state('a').state).toBe('restarting')
    await stand.expectAfter(30 * SECOND, ['a'])
  })

  test('does not count the restart if the hub did not receive it', async () => {
    const stand = new Stand().start('a').crash('a')
    const answer = Promise.withResolvers<Outcome>()
    stand.answer = () => answer.promise
    await stand.clock.advance(10 * SECOND)
    stand.control('a', { forget: true })
    answer.resolve(refusal('hub_unreachable'))
    await stand.clock.advance(1)
    expect(stand.state('a')).toMatchObject({ state: 'waiting', restarts: 0 })
  })
})
