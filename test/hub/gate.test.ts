import { describe, expect } from 'vitest'
import { Limiter } from '../../src/base/limiter.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { asked, listed, test } from './support.ts'

describe('hubs that share a limiter', () => {
  test('are contacted in limited numbers at a time', async ({ hold, listen }) => {
    const gate = new Limiter({ clock: new FakeClock(), slots: 3 })
    const under = new Set<string>()
    let most = 0
    const { url } = await listen((request, response) => {
      const [, hub = '', ...rest] = (request.url ?? '').split('/')
      under.add(hub)
      most = Math.max(most, under.size)
      if (rest.at(-1) === 'app') under.delete(hub)
      response.setHeader('x-homey-id', hub).setHeader('content-type', 'application/json').end('{}')
    })
    const hubs = Array.from({ length: 30 }, (_, i) => hold(`${url}/hub${i}`, { realtime: false }, { gate }))
    await Promise.all(hubs.map(listed))
    expect(most).toBe(3)
  })

  test('are read although most of those before them do not answer', async ({ emulate, hold, listen }) => {
    const clock = new FakeClock()
    const gate = new Limiter({ clock, slots: 4, slotTimeoutMs: 1000 })
    let asked = 0
    const { url: dead } = await listen(() => {
      asked += 1
    })
    const emulated = await emulate()
    for (let i = 0; i < 40; i += 1) hold(dead, { timeoutMs: 60_000 }, { gate })
    const living = hold(emulated.url, { realtime: false }, { gate })
    for (let second = 1; second <= 10; second += 1) {
      await until(`${4 * second} hubs that are asked`, () => asked === 4 * second)
      expect(living.hub.apps.complete).toBe(false)
      await clock.advance(1_000)
    }
    await listed(living)
  })
})

test('a hub is starting until it has been read and its session is open, or until something fails', async ({
  emulate,
  hold,
}) => {
  const emulated = await emulate()
  const refusing = await emulate()
  refusing.behave('refuse-handshake')
  const hubs = {
    well: hold(emulated.url),
    polled: hold(emulated.url, { realtime: false }),
    refused: hold(refusing.url),
    dead: hold('http://127.0.0.1:1'),
  }
  for (const { hub } of Object.values(hubs)) expect(hub.isStarting).toBe(true)
  for (const { hub } of Object.values(hubs)) await until('the end of the start', () => !hub.isStarting)
  expect(hubs.well.hub.apps.complete).toBe(true)
  expect(hubs.polled.hub.apps.complete).toBe(true)
  expect(hubs.refused.hub.status).toMatchObject({ online: true, realtime: 'polling' })
  expect(hubs.dead.hub.status).toMatchObject({ online: false, reason: 'unreachable' })
})

test('lists of hubs that were read at the same time are later read at different times', async ({ emulate, hold }) => {
  const clock = new FakeClock()
  const { next: random } = new Random(7)
  const emulated = await emulate()
  const options = { realtime: false, pollInterval: 600_000, pollIntervalFallback: 100_000, timeoutMs: 500_000 }
  const hubs = Array.from({ length: 100 }, () => hold(emulated.url, options, { clock, random }))
  await Promise.all(hubs.map(listed))
  const others = new Set([options.timeoutMs, 1_000])
  const pauses = () => clock.waits.filter((ms) => !others.has(ms))
  await until('the pauses', () => pauses().length === 100)
  const tenths = Map.groupBy(pauses(), (ms) => Math.ceil(ms / 10_000))
  expect([...tenths.keys()].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(Math.max(...tenths.values().map(({ length }) => length))).toBeLessThan(33)
  emulated.forgetRequests()
  await clock.advance(100_000)
  await until('a read of each', () => asked(emulated, 'getApps') === 100)
})
