/** Tests the limits on restarts: retries after giving up, the budget of a hub, and storms. */
import { describe, expect, test } from 'vitest'
import type { HubEventPayload } from '../../src/contract/events.ts'
import { configOf, HOUR, MINUTE, refusal, SECOND, Stand } from './stand.ts'

const tired = (options: string) =>
  new Stand(`guard: { watch: ["*"], max_restarts: 1, ${options} }`).start('a').giveUp('a')

/** Resolves with the seconds until the next restart. */
const untilNext = async (stand: Stand, most = 30 * HOUR) => {
  const [before, from] = [stand.restarted.length, stand.clock.elapsed()]
  while (stand.restarted.length === before && stand.clock.elapsed() - from < most) await stand.clock.advance(SECOND)
  return (stand.clock.elapsed() - from) / SECOND
}

const down = { state: 'crashed', crashed: true, crash_message: 'Error: boom', crash_count: 2 } as const

describe('an app that was given up', () => {
  test('is tried once after each time of the list, whose last time repeats, and stays given up', async () => {
    const stand = await tired('retry: [5m, 10m, 20m]')
    for (const minutes of [5, 10, 20, 20]) {
      const due = Date.parse(stand.state('a').retry_at ?? '') - stand.clock.now()
      expect(due).toBe(minutes * MINUTE)
      expect(await untilNext(stand)).toBe(minutes * 60)
      expect(stand.state('a')).toMatchObject({ state: 'given_up', next_restart_at: null })
      expect(stand.eventTypes.at(-1)).toBe('retried')
      stand.run('a').crash('a')
    }
    expect(stand.eventTypes.filter((type) => type === 'gave_up')).toHaveLength(1)
    expect(stand.state('a')).toMatchObject({ restarts: 5 })
  })

  test('starts the list again after it has run for an hour, and is watched again', async () => {
    const stand = await tired('retry: [5m, 10m]')
    await untilNext(stand)
    stand.run('a')
    await stand.clock.advance(HOUR)
    expect(stand.state('a')).toMatchObject({ state: 'watching', retry_at: null })
    stand.crash('a')
    expect(await untilNext(stand)).toBe(10)
    stand.crash('a').run('a')
    stand.crash('a')
    expect(stand.state('a').state).toBe('given_up')
    expect(await untilNext(stand)).toBe(300)
  })

  test('is left alone without times, and while it runs', async () => {
    const never = await tired('retry: []')
    expect(never.state('a').retry_at).toBeNull()
    expect(await untilNext(never)).toBe(30 * 3600)
    const stand = await tired('retry: [5s]')
    stand.run('a')
    await stand.clock.advance(59 * MINUTE)
    expect(stand.restarted).toHaveLength(1)
    stand.crash('a')
    expect(await untilNext(stand)).toBe(5)
  })

  test.each<[string, string, (stand: Stand) => unknown, number]>([
    ['in quiet hours', ', quiet_hours: "12:00-14:00", time_zone: UTC', () => {}, 7190],
    ['while it is snoozed', '', (stand) => stand.control('a', { snooze: HOUR }), 3600],
    ['while its hub is offline', '', (stand) => stand.setOnline(false), 108_000],
    ['after a user has stopped it', '', (stand) => stand.say('a', { state: 'stopped', crashed: false }), 108_000],
    ['after a user has disabled it', '', (stand) => stand.say('a', { enabled: false }), 108_000],
  ])('is not tried %s', async (_, options, happens, seconds) => {
    const stand = await (options === '' ? tired('retry: [5m]') : tiredAt('retry: [5m]', options))
    happens(stand)
    expect(await untilNext(stand)).toBe(seconds)
  })

  /** Returns a stand with an app that the guardian gives up on right before noon. */
  const tiredAt = async (retry: string, options: string) => {
    const stand = new Stand(`guard: { watch: ["*"], max_restarts: 1, ${retry}${options} }`)
    await stand.clock.advance(24 * HOUR - 20 * SECOND)
    await stand.start('a').giveUp('a')
    await stand.clock.advance(20 * SECOND)
    return stand
  }

  test('needs attention until a reload ignores it', async () => {
    const stand = await tired('retry: []')
    expect([stand.state('a').attention, stand.guard.attentionOf('home')]).toEqual([['exception'], ['a']])
    stand.live.value = configOf('guard: { watch: ["*"], ignore: [a] }')
    stand.guard.reconfigured()
    expect(stand.state('a')).toMatchObject({ state: 'off', attention: [] })
    expect(stand.guard.attentionOf('home')).toEqual([])
  })

  test('continues where it was when the bridge starts again', async () => {
    const stand = await tired('retry: [5m, 10m, 20m]')
    await untilNext(stand)
    stand.run('a').crash('a')
    await stand.clock.advance(MINUTE)
    const next = (await stand.next()).start().say('a', down)
    expect(next.facts('a')).toEqual(stand.facts('a'))
    expect(await untilNext(next)).toBe(540)
    next.run('a').crash('a')
    expect(await untilNext(next)).toBe(1200)
  })

  test.each(['a reload', 'a restart of the bridge'])(
    'is tried after a shorter time once %s has configured it',
    async (how) => {
      let stand = await tired('retry: [20h]')
      const shorter = 'guard: { watch: ["*"], max_restarts: 1, retry: [5m] }'
      stand.live.value = configOf(shorter)
      if (how === 'a reload') stand.guard.reconfigured()
      else stand = (await stand.next(shorter)).start().say('a', down)
      await stand.clock.advance(MINUTE)
      stand.guard.reconfigured()
      expect(await untilNext(stand)).toBe(240)
    },
  )

  test('is not tried by a bridge that starts and finds it stopped by a user', async () => {
    const stand = await tired('retry: [5m]')
    const next = (await stand.next()).start().say('a', { state: 'stopped', crashed: false, crash_message: null })
    expect(await untilNext(next)).toBe(108_000)
  })

  test('is tried again soon if the hub was too busy, and fails once if it is not allowed', async () => {
    const stand = await tired('retry: [5m, 24h]')
    stand.answer = () => Promise.resolve(refusal('busy'))
    expect(await untilNext(stand)).toBe(300)
    stand.answer = () => Promise.resolve(refusal('forbidden'))
    expect(await untilNext(stand)).toBe(60)
    await stand.clock.advance(SECOND)
    expect(stand.eventTypes.filter((type) => type === 'gave_up')).toHaveLength(1)
    expect(stand.state('a')).toMatchObject({ state: 'given_up', restarts: 1 })
  })
})

describe('a hub', () => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  const OPTIONS = 'guard: { watch: ["*"], hub_max_restarts: 3, window: 10m, storm: { apps: 100 } }'

  const crashAll = (stand: Stand) => {
    stand.startsApps()
    for (const id of ids) stand.crash(id)
  }

  test('has at most as many restarts in the window as configured; other apps wait, which is logged once', async () => {
    const stand = new Stand(OPTIONS).start(...ids)
    crashAll(stand)
    await stand.expectAfter(9 * MINUTE, ['a', 'b', 'c'])
    expect(stand.state('d')).toMatchObject({ state: 'waiting', next_restart_at: '2026-01-05T12:10:10.000Z' })
    expect(stand.warnings).toEqual([expect.stringContaining('hub_max_restarts')])
    await stand.expectAfter(2 * MINUTE, ids)
    expect(stand.eventTypes).not.toContain('gave_up')
  })

  test('counts scheduled restarts and retries, but not failed ones, and those of an earlier bridge', async () => {
    const stand = new Stand(`${OPTIONS.slice(0, -2)}, time_zone: UTC, schedule: { "*": "5 12 * * *" } }`).start(...ids)
    stand.startsApps()
    await stand.expectAfter(6 * MINUTE, ['a', 'b', 'c'])
    const next = (await stand.next(OPTIONS)).start(...ids)
    crashAll(next)
    await next.expectAfter(8 * MINUTE, [])
    await next.clock.advance(2 * MINUTE)
    expect(next.restarted.length).toBe(3)
    const busy = new Stand(OPTIONS).start(...ids)
    busy.answer = () => Promise.resolve(refusal('busy'))
    busy.crash('a')
    await busy.clock.advance(9 * MINUTE)
    expect(busy.restarted.length).toBeGreaterThan(3)
  })
})

describe('a storm', () => {
  const OPTIONS = 'guard: { watch: ["*"], ignore: ["ignored"], max_restarts: 1, storm: { apps: 3, within: 60s } }'
  const crash = async (stand: Stand, ids: readonly string[], wait = 5 * SECOND) => {
    for (const id of ids) {
      stand.crash(id)
      await stand.clock.advance(wait)
    }
  }
  const types = (events: readonly HubEventPayload[]) => events.map(({ event_type }) => event_type)

  test('delays all restarts until no app has crashed for as long, and then restarts one after the other', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c', 'd')
    await crash(stand, ['a', 'b', 'c'], SECOND)
    expect(stand.hubEvents).toEqual([
      { event_type: 'storm', app: null, apps: ['a', 'b', 'c'], at: '2026-01-05T12:00:02.000Z' },
    ])
    await stand.clock.advance(50 * SECOND)
    stand.crash('d')
    await stand.expectAfter(MINUTE - 1, [])
    expect(stand.state('a')).toMatchObject({ state: 'waiting', next_restart_at: '2026-01-05T12:01:53.000Z' })
    await stand.clock.advance(1)
    expect(stand.hubEvents.at(-1)).toMatchObject({ event_type: 'storm_over', apps: ['a', 'b', 'c', 'd'] })
    expect(stand.restarted).toEqual(['a'])
    stand.run('a')
    await stand.expectAfter(1, ['a', 'b'])
    expect(stand.state('a')).toMatchObject({ restarts: 1, restarts_in_window: 0 })
    // Crashes after the storm must count again.
    for (const id of ['b', 'c', 'd']) stand.run(id)
    stand.crash('a')
    await stand.clock.advance(2 * MINUTE)
    expect(stand.state('a')).toMatchObject({ restarts: 2, restarts_in_window: 1 })
  })

  test.each<[string, (stand: Stand) => Promise<void>]>([
    ['crashes that are further apart', (stand) => crash(stand, ['a', 'b', 'c'], 30 * SECOND)],
    ['one app that crashes again and again', (stand) => crash(stand, ['a', 'a', 'a', 'a'])],
    ['an app that is ignored', (stand) => crash(stand, ['a', 'b', 'ignored'])],
    [
      'an app that is disabled',
      (stand) => crash(stand.say('c', { enabled: false, state: 'stopped' }), ['a', 'b', 'c']),
    ],
    ['an app whose guard is off', (stand) => crash(stand.control('c', { enabled: false }), ['a', 'b', 'c'])],
    [
      'an app that was given up',
      async (stand) => {
        await stand.giveUp('c')
        await stand.clock.advance(2 * MINUTE)
        stand.run('c')
        await crash(stand, ['a', 'b', 'c'])
      },
    ],
  ])('does not result from %s', async (_, happens) => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c', 'ignored')
    await happens(stand)
    await stand.clock.advance(5 * MINUTE)
    expect(stand.hubEvents).toEqual([])
  })

  test('does not result from apps that are found crashed when the bridge starts', async () => {
    const stand = new Stand(OPTIONS)
    stand.guard.activate(true)
    for (const id of ['a', 'b', 'c', 'd']) stand.say(id, { state: 'crashed', crashed: true })
    stand.setOnline(true)
    await stand.clock.advance(2 * MINUTE)
    expect(stand.hubEvents).toEqual([])
    expect(stand.restarted).toContain('a')
  })

  test('is reported while no app is watched, for all but the ignored ones, and nothing is restarted', async () => {
    for (const updates of ['', '\nupdates: { policy: window, window: { start: "0 4 * * *" } }']) {
      const stand = new Stand(`guard: { ignore: ["ignored"] }${updates}`).start('a', 'b', 'c', 'ignored')
      await crash(stand, ['a', 'b', 'ignored'])
      expect(stand.hubEvents).toEqual([])
      stand.crash('c')
      await stand.clock.advance(HOUR)
      expect(types(stand.hubEvents)).toEqual(['storm', 'storm_over'])
      expect(stand.orders).toEqual([])
    }
  })

  test('is reported only by the active bridge', async () => {
    for (const yaml of ['guard: { watch: [] }', OPTIONS]) {
      const stand = new Stand(yaml).start('a', 'b', 'c')
      stand.guard.standBy()
      await crash(stand, ['a', 'b', 'c'])
      await stand.clock.advance(HOUR)
      expect(stand.hubEvents).toEqual([])
    }
  })

  test('in quiet hours waits for their end, and a snooze during it lasts as long as requested', async () => {
    const stand = new Stand(`${OPTIONS.slice(0, -2)}, quiet_hours: "12:00-13:00", time_zone: UTC }`)
    stand.start('a', 'b', 'c')
    stand.startsApps()
    await crash(stand, ['a', 'b', 'c'])
    stand.control('a', { snooze: 3 * HOUR })
    await stand.clock.advance(HOUR - 15 * SECOND - 1)
    expect(types(stand.hubEvents)).toEqual(['storm', 'storm_over'])
    expect(stand.restarted).toEqual([])
    await stand.expectAfter(2 * MINUTE, ['b', 'c'])
    await stand.expectAfter(3 * HOUR, ['b', 'c', 'a'])
  })

  test('that a single app would prolong, because the hub starts it and it crashes again, ends', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    await crash(stand, ['a', 'b', 'c'])
    for (let times = 0; times < 10; times += 1) {
      stand.run('c').crash('c')
      await stand.clock.advance(40 * SECOND)
    }
    expect(stand.restarted).toContain('a')
  })

  test('continues in a bridge that starts during it, which reports its end only if it reported its beginning', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    await crash(stand, ['a', 'b', 'c'], SECOND)
    const next = (await stand.next()).start()
    for (const id of ['a', 'b', 'c'])
      next.say(id, { state: 'crashed', crashed: true, crash_message: 'Error: boom', crash_count: 1 })
    await next.expectAfter(58 * SECOND, [])
    await next.clock.advance(3 * MINUTE)
    expect(next.restarted).toEqual(expect.arrayContaining(['a', 'b', 'c']))
    expect(next.hubEvents).toEqual([])
  })

  test.each([-1, 1])('lasts as long when the clock is set by %i hours', async (hours) => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    await crash(stand, ['a', 'b', 'c'], SECOND)
    stand.clock.step(hours * HOUR)
    stand.read()
    await stand.expectAfter(58 * SECOND, [])
    await stand.expectAfter(2 * SECOND, ['a'])
  })
})
