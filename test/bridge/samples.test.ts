import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesOf, Samples, SIZES } from '../../src/bridge/samples.ts'
import { type App, patchApp } from '../../src/hub/app.ts'
import type { AppsListener } from '../../src/hub/app-manager.ts'
import { type HubStatus, UNKNOWN_STATUS } from '../../src/hub/status.ts'
import { FakeClock } from '../support/fake-clock.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const BLANK = patchApp(undefined, '', {})

/** Creates a hub that reports the usage set by the test. */
function fakeHub() {
  const listeners: AppsListener[] = []
  const status: ((status: HubStatus) => void)[] = []
  const apps = new Map<string, App>()
  return {
    apps: {
      all: apps,
      subscribe(listener: AppsListener) {
        listeners.push(listener)
        return () => true
      },
    },
    subscribe(listener: (status: HubStatus) => void) {
      status.push(listener)
      return () => true
    },
    uses(id: string, cpu_percent: number | null, memory_bytes: number | null = 1000) {
      const before = apps.get(id)
      const after = { ...BLANK, id, cpu_percent, memory_bytes }
      apps.set(id, after)
      for (const listener of listeners) listener({ changes: [{ id, before, after }], silent: false, read: false })
    },
    gone(id: string) {
      const before = apps.get(id)
      apps.delete(id)
      for (const listener of listeners)
        listener({ changes: [{ id, before, after: undefined }], silent: false, read: false })
    },
    read() {
      for (const listener of listeners) listener({ changes: [], silent: false, read: true })
    },
    offline() {
      for (const listener of status) listener({ ...UNKNOWN_STATUS, reason: 'unreachable' })
    },
  }
}

function open() {
  const clock = new FakeClock()
  const samples = new Samples(clock)
  const hub = fakeHub()
  samples.follow('home', hub)
  const start = clock.now()
  const read = (ms: number) => samples.read('home', 'x', ms)
  return { clock, samples, hub, start, read }
}

describe('the samples of an app', () => {
  test('have one bucket per minute with the mean of its CPU and the maximum of its memory, including the current one', async () => {
    const { clock, samples, hub, start, read } = open()
    hub.uses('x', 1, 100)
    hub.uses('x', 3, 300)
    expect(read(HOUR).samples).toEqual([[start, 2, 300]])
    expect(samples.memory('home', 'x', 0)).toEqual([[0, 300]])
    hub.uses('x', 2, 200)
    await clock.advance(MINUTE)
    hub.uses('x', 10, 50)
    expect(read(HOUR)).toEqual({
      seconds: 60,
      samples: [
        [start, 2, 300],
        [start + MINUTE, 10, 50],
      ],
    })
  })

  test('continue with the last value of an app whose usage does not change', async () => {
    const { clock, hub, start, read } = open()
    hub.uses('x', 1, 100)
    await clock.advance(3 * MINUTE)
    expect(read(HOUR).samples).toEqual([0, 1, 2, 3].map((minute) => [start + minute * MINUTE, 1, 100]))
  })

  test('have gaps while the hub is offline or the app is stopped, and continue with the next list', async () => {
    const { clock, hub, start, read } = open()
    hub.uses('x', 1, 100)
    hub.offline()
    await clock.advance(2 * MINUTE)
    hub.read()
    await clock.advance(MINUTE)
    hub.uses('x', null, null)
    await clock.advance(MINUTE)
    expect(read(HOUR).samples).toEqual([
      [start, 1, 100],
      [start + MINUTE, null, null],
      [start + 2 * MINUTE, 1, 100],
      [start + 3 * MINUTE, 1, 100],
      [start + 4 * MINUTE, null, null],
    ])
  })

  test('cover six hours by the minute, and a week in steps of ten minutes', async () => {
    const { clock, hub, read } = open()
    for (let minute = 0; minute < 8 * 24 * 60; minute += 1) {
      hub.uses('x', minute % 10, minute)
      await clock.advance(MINUTE)
    }
    const newest = 8 * 24 * 60 - 1
    const hours = read(6 * HOUR)
    expect([hours.seconds, hours.samples.length]).toEqual([60, 360])
    expect(hours.samples.at(-2)?.slice(1)).toEqual([newest % 10, newest])
    const week = read(7 * DAY)
    expect([week.seconds, week.samples.length]).toEqual([600, 1008])
    expect(week.samples.slice(0, -1).every(([, cpu]) => cpu === 4.5)).toBe(true)
    expect(week.samples.at(-2)?.[2]).toBe(newest)
    expect(read(DAY).samples).toHaveLength(144)
  })

  test('include the current bucket of ten minutes too', async () => {
    const { clock, hub, start, read } = open()
    await clock.advance(10 * MINUTE)
    hub.uses('x', 1, 100)
    await clock.advance(3 * MINUTE)
    hub.uses('x', 5, 900)
    expect(read(DAY)).toEqual({ seconds: 600, samples: [[start + 10 * MINUTE, 2, 900]] })
  })

  test.each([HOUR, -HOUR])('keep their order and number when the clock is set by %s', async (step) => {
    const { clock, hub, read } = open()
    for (let minute = 0; minute < 120; minute += 1) {
      if (minute === 60) clock.step(step)
      hub.uses('x', 1, minute)
      await clock.advance(MINUTE)
    }
    const { samples } = read(3 * HOUR)
    expect(samples).toHaveLength(121)
    expect(samples.map(([at]) => clock.now() - at)).toEqual(samples.map((_, i) => (120 - i) * MINUTE))
    expect(samples.slice(0, 120).map(([, , memory]) => memory)).toEqual([...Array(120).keys()])
  })

  test('are removed with the app, and with the hub', () => {
    const { hub, samples } = open()
    hub.uses('x', 1)
    hub.uses('y', 1)
    hub.gone('x')
    expect([...samples.all(HOUR)].map(([{ app }]) => app)).toEqual(['y'])
    samples.forget('home')
    hub.uses('y', 2)
    expect([...samples.all(HOUR)]).toEqual([])
    expect(samples.count).toBe(0)
  })

  test('are in order and never older than requested, whatever happens', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 * HOUR }), fc.option(fc.integer({ min: 0, max: 400 }))))
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 168 }), (all, hours) => {
        let now = 0
        const samples = new Samples({ now: () => now, elapsed: () => now, after: () => () => {} })
        const hub = fakeHub()
        samples.follow('home', hub)
        for (const [wait, cpu] of all) {
          now += wait
          hub.uses('x', cpu, cpu)
        }
        const { seconds, samples: read } = samples.read('home', 'x', hours * HOUR)
        const times = read.map(([at]) => at)
        expect(times).toEqual(times.toSorted((one, other) => one - other))
        expect(times.every((at) => at <= now && at > now - hours * HOUR - seconds * 1000)).toBe(true)
      }),
    )
  })
})

test('the samples of many apps use at most 24 KiB per app and 16 MiB in all, with wider buckets before the week is shortened', async () => {
  expect(bytesOf(SIZES[0])).toBeLessThanOrEqual(24 * 1024)
  const { clock, hub, samples, read } = open()
  await clock.advance(20 * MINUTE)
  hub.uses('x', 4, 4000)
  await clock.advance(2 * HOUR)
  hub.uses('x', 8, 8000)
  const seen: [apps: number, minutes: number, week: boolean][] = []
  let mostBytes = 0
  for (let n = 1; n <= 90_000; n += 1) {
    const before = samples.size
    hub.uses(`app-${n}`, 1)
    mostBytes = Math.max(mostBytes, samples.count * bytesOf(samples.size))
    if (samples.size !== before) seen.push([n, samples.size.minutes, samples.size.long > 0])
  }
  expect(mostBytes).toBeLessThanOrEqual(16 * 1024 * 1024)
  expect(seen).toEqual([
    [1497, 2, true],
    [2991, 4, true],
    [5957, 8, true],
    [11_848, 16, true],
    [23_301, 16, false],
  ])
  // The bridge keeps as many earlier samples as the memory limit permits.
  const { samples: left } = read(6 * HOUR)
  expect(left.map(([, cpu]) => cpu).slice(0, -1)).toEqual(Array(left.length - 1).fill(4))
  expect(left.at(-1)?.[2]).toBe(8000)
  expect(left.length).toBeGreaterThanOrEqual(8)
  // Because of the memory limit, the last apps have no records.
  expect([...samples.read('home', 'app-90000', HOUR).samples]).toEqual([])
})
