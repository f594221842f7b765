/** Tests which data the guardian has about an app after a restart of the bridge, and on a bridge that takes over. */
import { describe, expect, test } from 'vitest'
import type { GuardControl } from '../../src/contract/guard.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { HOUR, MINUTE, refusal, SECOND, Stand } from './stand.ts'

/** Starts the next bridge with the data on the broker. `isStandby`: it also knows the app from its hub already. */
const nextRun = async (before: Stand, isStandby = false) => {
  const app = before.apps.get('a')
  const next = await before.next()
  if (isStandby && app !== undefined) next.say('a', app)
  before.guard.standBy()
  next.start()
  next.say('a', app ?? {})
  next.read()
  return next
}

/** Changes the app while no bridge is running. */
function miss(stand: Stand, patch: AppPatch): void {
  stand.guard.standBy()
  stand.say('a', patch)
}

describe('a restart count that was reset', () => {
  const LIMITS = 'backoff: 1s, backoff_max: 1s, max_restarts: 4'
  const OPTIONS = `guard: { watch: ["*"], ${LIMITS} }`

  const crash = async (stand: Stand, times: number) => {
    for (let i = 0; i < times; i += 1) {
      stand.crash('a')
      // The guardian waits for a minute before it restarts an app that a command has just started.
      await stand.clock.advance(MINUTE + SECOND)
      if (stand.state('a').state !== 'given_up') stand.run('a')
    }
  }
  const crashed = async (times: number, yaml = OPTIONS) => {
    const stand = new Stand(yaml).start('a')
    await crash(stand, times)
    expect(stand.state('a').restarts_in_window).toBe(Math.min(times, 4))
    return stand
  }

  const RESETS: Readonly<Record<string, (stand: Stand) => unknown>> = {
    'a switch': (stand) => stand.control('a', { enabled: true }),
    'a switch off and on': (stand) => stand.control('a', { enabled: false }).control('a', { enabled: true }),
    'a command that restarts the app': (stand) => stand.command('a', 'restart'),
    'a command that enables the app': (stand) => stand.command('a', 'enable'),
  }

  test.each(Object.entries(RESETS))(
    'by %s starts again only once, however often the bridge is restarted',
    async (_, reset) => {
      const stand = await crashed(3)
      reset(stand)
      expect(stand.state('a').restarts_in_window).toBe(0)
      for (const isStandby of [false, true]) {
        const next = await nextRun(stand, isStandby)
        expect(next.state('a')).toMatchObject({ state: 'watching', restarts: 3, restarts_in_window: 0 })
        await crash(next, 2)
        const last = await nextRun(next, isStandby)
        expect(last.state('a')).toMatchObject({ restarts: 5, restarts_in_window: 2 })
        await crash(last, 3)
        expect(last.state('a')).toMatchObject({ state: 'given_up', restarts: 7, restarts_in_window: 4 })
      }
    },
  )

  test('by "forget" leaves nothing on the broker', async () => {
    const stand = await crashed(3)
    stand.command('a', 'restart')
    expect(stand.facts('a').memory).toMatchObject({ reset_after: expect.any(String) })
    stand.control('a', { forget: true })
    expect(stand.facts('a').memory).toBeNull()
  })

  test('by an hour of running is not counted again if the window is longer', async () => {
    const stand = await crashed(3, OPTIONS.replace('}', ', window: 24h }'))
    await stand.clock.advance(HOUR)
    expect(stand.state('a').restarts_in_window).toBe(0)
    const next = await nextRun(stand)
    expect(next.state('a').restarts_in_window).toBe(0)
  })

  test('after the guardian gave up contains only later restarts', async () => {
    const stand = await crashed(5)
    expect(stand.state('a').state).toBe('given_up')
    stand.control('a', { enabled: true })
    await stand.clock.advance(2 * SECOND)
    expect(stand.state('a').restarts_in_window).toBe(1)
    const next = await nextRun(stand)
    expect(next.state('a')).toMatchObject({ restarts: 5, restarts_in_window: 1 })
  })

  test('stays reset when the app is removed, the bridge restarted and the app installed again', async () => {
    const stand = await crashed(3)
    stand.control('a', { enabled: true })
    stand.remove('a')
    stand.read()
    const next = await nextRun(stand)
    expect(next.state('a')).toMatchObject({ restarts: 3, restarts_in_window: 0 })
  })

  test('counts restarts after it, even if the clock was set back in between', async () => {
    const stand = await crashed(3)
    stand.control('a', { enabled: true })
    stand.clock.step(-5 * HOUR)
    await crash(stand, 2)
    const next = await nextRun(stand)
    expect(next.state('a').restarts_in_window).toBe(2)
  })

  test('during a restart that the hub then refuses stays reset', async () => {
    const stand = await crashed(2)
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Stand['answer']>>>()
    stand.answer = () => promise
    stand.crash('a')
    await stand.clock.advance(2 * SECOND)
    stand.control('a', { enabled: true })
    resolve(refusal('busy'))
    await stand.clock.advance(0)
    expect(stand.state('a')).toMatchObject({ restarts: 2, restarts_in_window: 0 })
    const next = await nextRun(stand)
    expect(next.state('a').restarts_in_window).toBe(0)
  })

  test('starts again for a version that the app had only before', async () => {
    const stand = await crashed(1)
    stand.say('a', { version: '2.0.0' })
    await crash(stand, 1)
    stand.control('a', { enabled: true })
    const next = await nextRun(stand)
    await crash(next, 1)
    next.say('a', { version: '1.0.0' })
    expect(next.state('a').restarts_in_window).toBe(0)
  })
})

describe('a failed update', () => {
  const OPTIONS =
    'guard: { watch: [] }\nupdates: { policy: window, window: { start: "0 * * * *", length: 2h }, time_zone: UTC }'

  const failed = async () => {
    const stand = new Stand(OPTIONS).start('a')
    stand.answer = () => Promise.resolve(refusal('hub_failed'))
    stand.say('a', { update_available: true, latest_version: '2.0.0' }).read()
    await stand.clock.advance(0)
    expect(stand.eventTypes).toEqual(['update_failed'])
    expect(stand.orders.splice(0)).toHaveLength(1)
    return stand
  }

  test.each([false, true])(
    'is retried after 20 hours, not at a restart of the bridge (standby: %s)',
    async (isStandby) => {
      let stand = await failed()
      for (const hours of [0, 1, 9, 9]) {
        await stand.pass(hours)
        expect(stand.orders).toEqual([])
        stand = await nextRun(stand, isStandby)
      }
      expect(stand.orders).toEqual([])
      await stand.pass(2)
      expect(stand.orders).toMatchObject([{ app: 'a', command: 'install' }])
    },
  )

  test.each([-1, 1])('is retried after 20 hours if the clock was set by %i days before the restart', async (days) => {
    const stand = await failed()
    stand.clock.step(days * 24 * HOUR)
    stand.read()
    const next = await nextRun(stand)
    await next.pass(19)
    expect(next.orders).toEqual([])
    await next.pass(2)
    expect(next.orders).toMatchObject([{ app: 'a', command: 'install' }])
  })

  test('because of a failed backup is not repeated either', async () => {
    const stand = new Stand(`${OPTIONS.slice(0, -2)}, backup: true }`).start('a')
    let backups = 0
    stand.backup = () => {
      backups += 1
      return Promise.resolve('No space.')
    }
    stand.say('a', { update_available: true, latest_version: '2.0.0' }).read()
    await stand.clock.advance(0)
    expect(backups).toBe(1)
    const next = await nextRun(stand)
    await next.clock.advance(MINUTE)
    expect(next.orders).toEqual([])
  })

  test('leaves nothing on the broker after 20 hours', async () => {
    const stand = await failed()
    expect(stand.facts('a').memory).toMatchObject({ update_failed_at: '2026-01-05T12:00:00.000Z' })
    stand.say('a', { update_available: false })
    await stand.pass(21)
    expect(stand.facts('a').memory).toBeNull()
  })
})

const UNLOADED: AppPatch = { state: 'stopped', crash_message: 'Unloaded by Homey Core' }
const COUNTED: AppPatch = { state: 'stopped', crash_count: 1 }
const SNOOZED = [{ snooze: HOUR }, { snooze: SECOND }] as const
const OFF = [{ enabled: false }, { enabled: true }] as const

describe.each<[string, GuardControl, GuardControl]>([
  ['snoozed', ...SNOOZED],
  ['turned off', ...OFF],
])('an app that was %s', (_, hold, release) => {
  test.each([
    ['unloaded', UNLOADED],
    ['stopped with a higher crash count', COUNTED],
  ])('when the hub %s it is restarted afterwards', async (_, crash) => {
    const stand = new Stand().start('a').control('a', hold).say('a', crash)
    await stand.clock.advance(MINUTE)
    const next = await nextRun(await nextRun(stand))
    await next.expectAfter(30 * MINUTE, [])
    await next.control('a', release).expectAfter(MINUTE, ['a'])
    expect(next.run('a').facts('a').memory?.down).toBeUndefined()
  })

  test('and that crashed, ran and was stopped by a user is not restarted afterwards', async () => {
    const stand = new Stand().start('a').control('a', hold).say('a', COUNTED)
    await stand.clock.advance(MINUTE)
    const next = await nextRun(stand.run('a').say('a', { state: 'stopped' }))
    await next.control('a', release).expectAfter(HOUR, [])
  })

  test('and that crashed and ran is not restarted if a user stops it later', async () => {
    const stand = new Stand().start('a').control('a', hold).say('a', COUNTED)
    miss(stand, { state: 'running' })
    const next = (await nextRun(stand)).say('a', { state: 'stopped' })
    await next.control('a', release).expectAfter(HOUR, [])
  })
})

test('a crash after which the guardian gave up is recorded once, also for an app that is no longer watched', async () => {
  const stand = await new Stand('guard: { watch: ["*"], max_restarts: 1 }').start('a').giveUp('a')
  const next = await nextRun(await nextRun(stand.control('a', { enabled: false })))
  const recorded = next.facts('a').history.map(({ what }) => what)
  expect(recorded).toEqual(['gave_up', 'crash', 'restart', 'crash'])
})

describe('a restart by guard.after_boot that waits for the end of quiet hours', () => {
  const OPTIONS = 'guard: { watch: ["*"], after_boot: { a: 10m }, quiet_hours: "11:00-14:00", time_zone: UTC }'
  const boot = (stand: Stand, age: number) => stand.guard.take('home', { kind: 'booted', at: stand.clock.now() - age })

  /** The hub has started at 12:00, and the restart waits since 12:10. */
  const waiting = async () => {
    const stand = new Stand(OPTIONS).start('a')
    boot(stand, 0)
    await stand.clock.advance(11 * MINUTE)
    expect(stand.state('a')).toMatchObject({ state: 'waiting', next_restart_at: '2026-01-05T14:00:00.000Z' })
    return stand
  }
  const nextRunAfter = async (stand: Stand, ms: number, isStandby = false) => {
    await stand.clock.advance(ms)
    const next = (await nextRun(stand, isStandby)).startsApps()
    boot(next, ms + 11 * MINUTE)
    return next
  }

  test.each([false, true])('is made at their end, by the next run of the bridge (standby: %s)', async (isStandby) => {
    const next = await nextRunAfter(await waiting(), HOUR, isStandby)
    await next.restartsAfter(49 * MINUTE, ['a'])
    expect(next.facts('a').history).toMatchObject([{ what: 'restart', reason: 'schedule' }])
    expect(next.facts('a').memory).toBeNull()
    await next.expectAfter(HOUR, ['a'])
  })

  test('is not made if the app was stopped in between', async () => {
    const stand = await waiting()
    miss(stand, { state: 'stopped' })
    const next = await nextRunAfter(stand, 0)
    expect(next.state('a')).toMatchObject({ state: 'watching', next_restart_at: null })
    next.run('a')
    await next.expectAfter(3 * HOUR, [])
  })

  test('counts as the restart of an app that crashed in between', async () => {
    const stand = await waiting()
    miss(stand, { state: 'crashed', crashed: true, crash_message: 'Error: boom' })
    const next = await nextRunAfter(stand, 0)
    expect(next.facts('a').history).toMatchObject([{ what: 'crash' }])
    await next.expectAfter(3 * HOUR, ['a'])
  })

  test('is replaced by the restart after a second start of the hub', async () => {
    const stand = await waiting()
    const next = (await nextRun(stand)).startsApps()
    boot(next, 0)
    expect(next.state('a').state).toBe('watching')
    await next.expectAfter(4 * HOUR, ['a'])
  })

  test('is not made if the bridge was down at their end', async () => {
    const stand = await waiting()
    stand.guard.standBy()
    const next = await nextRunAfter(stand, 2 * HOUR)
    await next.expectAfter(HOUR, [])
    expect(next.state('a').state).toBe('watching')
  })
})

test('a member of a fleet that gets a hub back continues with its own data, unless another has changed it', async () => {
  const stand = await new Stand('guard: { watch: ["*"], max_restarts: 1 }').start('a', 'b', 'c').read().giveUp('a')
  for (const id of ['b', 'c']) stand.control(id, { enabled: false })
  stand.remove('c')
  const before = { a: stand.facts('a'), gone: stand.guard.goneAppsOf('home') }
  const again = () => {
    const apps = [...stand.apps]
    stand.apps.clear()
    stand.serve()
    for (const [id, app] of apps) stand.say(id, app)
    return stand.read()
  }
  stand.guard.hubReleased('home')
  again()
  expect(before).toEqual({ a: stand.facts('a'), gone: stand.guard.goneAppsOf('home') })
  expect(stand.state('a')).toMatchObject({ state: 'given_up', restarts: 1, retry_at: expect.any(String) })
  expect([stand.state('b').state, before.gone?.length]).toEqual(['off', 1])
  stand.guard.hubReleased('home')
  stand.guard.learn('guardMemory', 'home', 'b', '')
  expect(again().state('b').state).toBe('watching')
})
