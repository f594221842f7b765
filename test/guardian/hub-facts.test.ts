/** Tests how the guardian reacts to a start of the hub, to unavailable devices, and to major and minor updates. */
import { describe, expect, test } from 'vitest'
import type { Links } from '../../src/bridge/guarding.ts'
import type { AppPatch } from '../../src/hub/app.ts'
import { configOf, HOUR, MINUTE, SECOND, Stand, UPDATES } from './stand.ts'

describe('a restart after a start of the hub', () => {
  const OPTIONS = 'guard: { watch: ["*"], after_boot: { a: 10m, "b*": 5m } }'
  const up = (stand: Stand, ms: number) => stand.guard.take('home', { kind: 'booted', at: stand.clock.now() - ms })
  const reboot = async (stand: Stand) => {
    stand.setOnline(false)
    await stand.clock.advance(MINUTE)
    stand.setOnline(true)
    up(stand, 20 * SECOND)
  }

  test('is made once, after the configured time, for the apps that configuration names', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c').startsApps()
    up(stand, 24 * HOUR)
    await stand.clock.advance(HOUR)
    up(stand, 25 * HOUR)
    await reboot(stand)
    await stand.restartsAfter(4 * MINUTE + 40 * SECOND, ['b'])
    await stand.expectAfter(5 * MINUTE, ['b', 'a'])
    for (let minutes = 10; minutes < 100; minutes += 1) {
      up(stand, minutes * MINUTE)
      await stand.clock.advance(MINUTE)
    }
    expect(stand.restarted).toEqual(['b', 'a'])
    expect(stand.facts('a').history).toMatchObject([{ what: 'restart', reason: 'schedule', by: 'guard' }])
  })

  test('is not made if a reload has removed it from the configuration', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b').startsApps()
    up(stand, 20 * SECOND)
    stand.live.value = configOf('guard: { watch: ["*"], after_boot: { a: 10m } }')
    stand.guard.reconfigured()
    await stand.expectAfter(HOUR, ['a'])
  })

  test('is made again after a second start, however soon', async () => {
    const stand = new Stand('guard: { watch: ["*"], after_boot: { a: 20s } }').start('a').startsApps()
    up(stand, 5 * SECOND)
    await stand.expectAfter(20 * SECOND, ['a'])
    stand.setOnline(false)
    await stand.clock.advance(15 * SECOND)
    stand.setOnline(true)
    up(stand, SECOND)
    await stand.expectAfter(3 * MINUTE, ['a', 'a'])
  })

  test('is made once for the second of two starts if the first one is still due while the hub is offline', async () => {
    const stand = new Stand(OPTIONS).start('a').startsApps()
    up(stand, 9 * MINUTE)
    stand.setOnline(false)
    await stand.clock.advance(90 * SECOND)
    stand.setOnline(true)
    up(stand, 20 * SECOND)
    await stand.expectAfter(9 * MINUTE + 39 * SECOND, [])
    await stand.expectAfter(HOUR, ['a'])
  })

  test('is made immediately if the start is detected only after the restart was due', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    up(stand, 24 * HOUR)
    await stand.clock.advance(HOUR)
    stand.setOnline(false)
    await stand.clock.advance(6 * MINUTE)
    stand.setOnline(true)
    await stand.clock.advance(2 * MINUTE)
    up(stand, 8 * MINUTE)
    await stand.expectAfter(SECOND, ['b'])
    await stand.expectAfter(HOUR, ['b', 'a'])
  })

  test.each<[string, (stand: Stand) => unknown]>([
    [
      'a hub that was only unreachable',
      async (stand) => {
        stand.setOnline(false)
        await stand.clock.advance(HOUR)
        stand.setOnline(true)
        up(stand, 25 * HOUR)
      },
    ],
    [
      'a clock that is set back by an hour, with a read before and after',
      (stand) => {
        stand.clock.step(-HOUR)
        up(stand, 24 * HOUR)
      },
    ],
    [
      'a clock that is set forward by an hour',
      (stand) => {
        stand.clock.step(HOUR)
        up(stand, 24 * HOUR)
      },
    ],
    [
      'a clock that is set back, with an uptime from before',
      (stand) => {
        const said = stand.clock.now() - 24 * HOUR
        stand.clock.step(-HOUR)
        stand.guard.take('home', { kind: 'booted', at: said })
      },
    ],
    ['figures that differ by seconds', (stand) => up(stand, 24 * HOUR - 15 * SECOND)],
  ])('does not follow %s', async (_, happens) => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    up(stand, 24 * HOUR)
    await happens(stand)
    await stand.expectAfter(2 * HOUR, [])
  })

  test('is made if the bridge starts after the hub, and it was not due before', async () => {
    const stand = new Stand(OPTIONS)
    stand.guard.activate(true)
    up(stand, 7 * MINUTE)
    for (const id of ['a', 'b']) stand.say(id, {})
    stand.setOnline(true)
    await stand.expectAfter(3 * MINUTE, ['a'])
    await stand.expectAfter(HOUR, ['a'])
  })

  test.each<[string, (stand: Stand) => unknown]>([
    ['is disabled', (stand) => stand.say('a', { enabled: false, state: 'stopped' })],
    ['does not run', (stand) => stand.say('a', { state: 'stopped' })],
    ['is snoozed', (stand) => stand.control('a', { snooze: 5 * HOUR })],
    ['is switched off', (stand) => stand.control('a', { enabled: false })],
  ])('is not made for an app that %s at that time', async (_, is) => {
    const stand = new Stand(OPTIONS).start('a')
    up(stand, 24 * HOUR)
    await stand.clock.advance(HOUR)
    await reboot(stand)
    is(stand)
    await stand.clock.advance(30 * MINUTE)
    stand.say('a', { enabled: true, state: 'running' })
    await stand.expectAfter(HOUR, [])
  })

  test('waits for an app that is still starting, and for the end of quiet hours', async () => {
    const quiet = `${OPTIONS.slice(0, -2)}, quiet_hours: "12:00-14:00", time_zone: UTC }`
    const stand = new Stand(quiet).start('a')
    up(stand, 24 * HOUR)
    stand.say('a', { state: 'starting' })
    await reboot(stand)
    await stand.clock.advance(30 * MINUTE)
    stand.say('a', { state: 'running' })
    await stand.expectAfter(88 * MINUTE, [])
    await stand.expectAfter(MINUTE, ['a'])
  })
})

test('an app stays stopped although the hub leaves the flag of an earlier crash set, until it runs and crashes again', async () => {
  const stand = new Stand('guard: { watch: ["*"] }').start('a')
  stand.say('a', { state: 'stopped', crashed: true, crash_message: 'Error: x', crash_count: 1 })
  await stand.expectAfter(11 * SECOND, ['a'])
  stand.say('a', { state: 'starting' })
  stand.say('a', { state: 'running' })
  await stand.clock.advance(2 * MINUTE)
  stand.say('a', { state: 'stopping' })
  stand.say('a', { state: 'stopped' })
  await stand.expectAfter(HOUR, ['a'])
  stand.say('a', { state: 'running' })
  await stand.clock.advance(MINUTE)
  stand.say('a', { state: 'stopped', crash_count: 2 })
  await stand.expectAfter(MINUTE, ['a', 'a'])
})

describe('an app whose devices are unavailable', () => {
  const OPTIONS = 'guard: { watch: ["*"], unavailable: { a: { devices: all, for: 10m }, b: { devices: 2, for: 1m } } }'

  const ALL_AWAY = { devices: 3, devices_unavailable: 3 }
  const link = (stand: Stand, apps: readonly string[], links: Links | null) =>
    stand.guard.take('home', { kind: 'links', links: new Map(apps.map((app) => [app, links])) })

  test('is restarted at the first read after the configured time that shows the same, and needs attention', async () => {
    const stand = new Stand(OPTIONS).start('a', 'b', 'c')
    const read = () => {
      link(stand, ['a', 'b', 'c'], ALL_AWAY)
    }
    read()
    await stand.clock.advance(4 * MINUTE)
    // The guardian restarts nothing until another read confirms that the devices are still unavailable.
    expect(stand.restarted).toEqual([])
    read()
    await stand.expectAfter(10 * SECOND, ['b'])
    stand.say('b', { state: 'starting' }).run('b')
    await stand.clock.advance(5 * MINUTE)
    read()
    expect(stand.state('a').attention).toEqual([])
    await stand.clock.advance(MINUTE)
    read()
    expect(stand.state('a').attention).toEqual(['devices_unavailable'])
    await stand.clock.advance(10 * SECOND)
    expect(stand.restarted.filter((id) => id === 'a')).toEqual(['a'])
    expect(stand.events.at(-1)).toMatchObject({ event_type: 'restarted', app: 'a', reason: 'devices_unavailable' })
  })

  test.each<[string, { devices: number | null; devices_unavailable: number | null } | null]>([
    ['some of them are available', { devices: 3, devices_unavailable: 2 }],
    ['it has none', { devices: 0, devices_unavailable: 0 }],
    ['it is not known how many there are', { devices: null, devices_unavailable: 3 }],
    ['it is not known how many are unavailable', { devices: 3, devices_unavailable: null }],
    ['nothing is known', null],
  ])('is not restarted if %s, even if all were before', async (_, links) => {
    const stand = new Stand(OPTIONS).start('a')
    link(stand, ['a'], ALL_AWAY)
    await stand.clock.advance(5 * MINUTE)
    link(stand, ['a'], links)
    await stand.clock.advance(6 * MINUTE)
    stand.read(5)
    await stand.expectAfter(HOUR, [])
    expect(stand.state('a').attention).toEqual([])
  })

  test('is not restarted because of the time for which its hub was offline', async () => {
    const stand = new Stand(OPTIONS).start('a')
    link(stand, ['a'], ALL_AWAY)
    stand.setOnline(false)
    await stand.clock.advance(HOUR)
    link(stand.setOnline(true), ['a'], ALL_AWAY)
    await stand.expectAfter(5 * MINUTE, [])
    link(stand, ['a'], { devices: 3, devices_unavailable: 0 })
    await stand.expectAfter(HOUR, [])
  })

  test.each<[string, AppPatch]>([
    ['does not run', { state: 'stopped' }],
    ['is disabled', { enabled: false, state: 'stopped' }],
  ])('is not restarted if it %s', async (_, patch) => {
    const stand = new Stand(OPTIONS).start('a')
    link(stand, ['a'], ALL_AWAY)
    stand.say('a', patch)
    link(stand, ['a'], ALL_AWAY)
    await stand.clock.advance(HOUR)
    stand.read(5)
    expect(stand.restarted).toEqual([])
  })

  test('is not restarted if they are available before its restart', async () => {
    const stand = new Stand(OPTIONS).start('a')
    link(stand, ['a'], ALL_AWAY)
    await stand.clock.advance(10 * MINUTE)
    link(stand, ['a'], ALL_AWAY)
    await stand.clock.advance(5 * SECOND)
    expect(stand.state('a').state).toBe('waiting')
    link(stand, ['a'], { devices: 3, devices_unavailable: 0 })
    await stand.expectAfter(HOUR, [])
    expect(stand.state('a')).toMatchObject({ state: 'watching', attention: [] })
  })
})

describe('an update in the window', () => {
  test.each<[largest: string | null, to: string | null, isInstalled: boolean]>([
    ['patch', '1.0.1', true],
    ['patch', '1.1.0', false],
    ['minor', '1.1.0', true],
    ['minor', '2.0.0', false],
    ['minor', 'newest', false],
    ['minor', null, false],
    ['major', '2.0.0', true],
    ['major', null, true],
    [null, '2.0.0', true],
    [null, 'newest', true],
    [null, '0.9.9', false],
    ['major', '1.0.0-rc.1+7', false],
    [null, '1.0.0+7', true],
    [null, '1.0.0', false],
    [null, 'v0.9.9', true],
  ])('of at most a %s step to %s is made: %s', async (largest, to, isInstalled) => {
    const stand = new Stand(`${UPDATES}${largest === null ? '' : `, severity: { "*": ${largest} }`} }`).start('a')
    stand.say('a', { update_available: true, latest_version: to }).read()
    await stand.clock.advance(2 * HOUR)
    expect(stand.orders.map(({ command }) => command)).toEqual(isInstalled ? ['install'] : [])
  })

  test('requests the version whose step is known, if the hub accepts a version', async () => {
    const stand = new Stand(`${UPDATES}, severity: { "*": minor } }`).start('a')
    stand.say('a', { update_available: true, latest_version: '1.1.0' }).read()
    await stand.clock.advance(2 * HOUR)
    expect(stand.orders).toMatchObject([{ command: 'install', payload: { version: '1.1.0' } }])
  })
})
