/** Tests how often and how fast the client sends requests to a hub. */
import pino from 'pino'
import { describe, expect } from 'vitest'
import { Backoff } from '../../src/base/backoff.ts'
import { systemClock } from '../../src/base/clock.ts'
import { keepRealtime, openRealtime } from '../../src/hub/realtime.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { asked, clientOf, QUICK, test } from './support.ts'

describe.concurrent('a hub that answers 429 while it is online', () => {
  test('stays online and gets the next request at the requested time, whatever triggers one', async ({ attach }) => {
    const clock = new FakeClock()
    const { emulated, watched } = await attach({ realtime: false }, { clock })
    emulated.behave('answer-status', { status: 429, retryAfter: 17 })
    emulated.forgetRequests()
    await until('the pause', () => clock.pending > 0)
    await clock.advance(10_000)
    await until('the wait', () => clock.waits.includes(17_000))
    expect(asked(emulated, 'getApps')).toBe(1)
    watched.hub.setFilter(() => true)
    await clock.advance(16_000)
    expect(asked(emulated, 'getApps')).toBe(1)
    emulated.behaveWell()
    await clock.advance(1_000)
    await until('the next read', () => asked(emulated, 'getApps') === 2)
    expect(watched.history).toEqual(['online polling null'])
  })

  test('gets fewer and fewer requests if it requests no time', async ({ attach }) => {
    const clock = new FakeClock()
    const { emulated, watched } = await attach({ realtime: false, timeoutMs: 5555 }, { clock })
    emulated.behave('answer-status', { status: 429 })
    await until('the pause', () => clock.pending > 0)
    await clock.advance(10_000)
    for (const wait of [1000, 2000, 4000, 8000]) {
      await until(`a wait of ${wait} ms`, () => clock.waits.at(-1) === wait)
      await clock.advance(wait)
    }
    expect(watched.history).toEqual(['online polling null'])
  })
})

test.concurrent('a hub that answers 429 to a ping is not asked for the permissions again', async ({ attach }) => {
  const { emulated, watched } = await attach({ realtime: false })
  const { client } = watched.hub
  emulated.behave('answer-status', { status: 429, operation: 'ping', times: 1 })
  emulated.forgetRequests()
  client.hub.doubt()
  await expect(client.call('getApps', {})).rejects.toMatchObject({ code: 'rate_limited' })
  watched.hub.setFilter(() => true)
  await until('a read', () => asked(emulated, 'getApps') === 1)
  expect(asked(emulated, 'getSessionMe')).toBe(0)
})

test.concurrent('a realtime session that is no longer needed is not opened, because nothing would close it', async ({
  emulate,
}) => {
  const emulated = await emulate()
  const options = { url: emulated.url, apiKey: 'key', hubId: null, timeoutMs: 5000, settleMs: 0, clock: systemClock }
  const opening = openRealtime({
    ...options,
    prove: async () => {},
    apps: { receive: () => {} },
    signal: AbortSignal.abort(),
  })
  await expect(opening).rejects.toMatchObject({ code: 'unreachable' })
  expect(emulated.connections.subscribers).toBe(0)
})

test.concurrent('a hub that answers 429 to its first list is not offline, and is asked only for the list again', async ({
  emulate,
  hold,
}) => {
  const emulated = await emulate()
  emulated.behave('answer-status', { status: 429, operation: 'getApps', times: 2 })
  const watched = hold(emulated.url, { realtime: false }, { clock: QUICK })
  await until('the list', () => watched.hub.apps.complete)
  expect(asked(emulated, 'getApps')).toBe(3)
  expect(asked(emulated, 'getSessionMe')).toBe(1)
  expect(watched.history).toEqual(['online polling null'])
})

test('after the first 429 requests are spaced, so that the hub accepts them all', async ({ emulate }) => {
  const emulated = await emulate()
  const client = clientOf(emulated.url)
  await client.hub.identify()
  emulated.behave('rate-limit', { requests: 4, windowMs: 500 })
  const many = (n: number) => Promise.allSettled(Array.from({ length: n }, () => client.call('getApps', {})))
  expect((await many(6)).some(({ status }) => status === 'rejected')).toBe(true)
  await new Promise((resolve) => setTimeout(resolve, 500))
  emulated.forgetRequests()
  expect((await many(12)).filter(({ status }) => status === 'rejected')).toEqual([])
  await client.close()
})

test.concurrent('without a 429 requests are not delayed', async ({ emulate }) => {
  const emulated = await emulate()
  const clock = new FakeClock()
  const client = clientOf(emulated.url, { timeoutMs: 5000 }, clock)
  await Promise.all(Array.from({ length: 20 }, () => client.call('getApps', {})))
  expect(clock.waits.every((ms) => ms === 5000)).toBe(true)
  await client.close()
})

describe.concurrent('a realtime channel that is lost again and again', () => {
  async function waitsOf(sessionMs: number): Promise<number[]> {
    const clock = new FakeClock()
    const ending = new AbortController()
    const waits: number[] = []
    const after = (ms: number, task: () => void) => {
      waits.push(ms)
      return clock.after(ms, task)
    }
    const kept = keepRealtime({
      open: () => {
        const { promise: ended, resolve } = Promise.withResolvers<string>()
        clock.after(sessionMs, () => resolve('gone'))
        ending.signal.addEventListener('abort', () => resolve('closed'))
        return Promise.resolve({ ended, close: () => {} })
      },
      onUp: () => Promise.resolve(),
      onLost: () => {},
      backoff: new Backoff({ min: 1000, max: 30_000, random: () => 1 }),
      clock: { now: clock.now, elapsed: clock.elapsed, after },
      log: pino({ level: 'silent' }),
      signal: ending.signal,
    })
    while (waits.length < 4) await clock.advance(sessionMs)
    ending.abort()
    await kept
    return waits.slice(0, 4)
  }

  test('is opened less and less often', async () => {
    expect(await waitsOf(1100)).toEqual([1000, 2000, 4000, 8000])
  })

  test('but immediately again after it has stayed up for a while', async () => {
    expect(await waitsOf(30_000)).toEqual([1000, 1000, 1000, 1000])
  })

  test('causes only a few requests', async ({ attach }) => {
    const { emulated, watched } = await attach({}, { clock: QUICK, random: () => 0.5 })
    emulated.forgetRequests()
    const end = performance.now() + 600
    while (performance.now() < end) {
      if (emulated.connections.subscribers > 0 && watched.hub.status.realtime === 'connected')
        emulated.dropRealtime('cut')
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    const logins = emulated.requests.filter(({ path }) => path.includes('session/me')).length
    expect(asked(emulated, 'getApps')).toBeLessThanOrEqual(5)
    expect(logins).toBeLessThanOrEqual(5)
  })
})

describe.concurrent('the pause between two reads', () => {
  test('is the shorter one while realtime is not connected', async ({ attach }) => {
    const clock = new FakeClock()
    const { emulated } = await attach({ realtime: false, pollInterval: 2000, pollIntervalFallback: 10_000 }, { clock })
    emulated.forgetRequests()
    await until('the pause', () => clock.pending > 0)
    await clock.advance(2_000)
    await until('the read', () => asked(emulated, 'getApps') === 1)
  })

  test('is the longer one as soon as realtime is connected', async ({ attach }) => {
    const { emulated } = await attach({ pollInterval: 60_000, pollIntervalFallback: 1000 })
    emulated.forgetRequests()
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(asked(emulated, 'getApps')).toBe(0)
  })
})

test('a timer that is overdue runs immediately and without a warning', async () => {
  const warnings: string[] = []
  const note = (warning: Error) => warnings.push(warning.name)
  process.on('warning', note)
  await new Promise<void>((resolve) => systemClock.after(-5, resolve))
  await new Promise(setImmediate)
  process.off('warning', note)
  expect(warnings).toEqual([])
})
