import { describe, expect } from 'vitest'
import { retryRateLimited } from '../../src/hub/client.ts'
import { HubError } from '../../src/hub/errors.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { until } from '../support/until.ts'
import { APP, app, type Desk, openDesk, test } from './desk.ts'

const codes = ({ sent }: Desk) => sent.map(({ answer }) => answer['error']).map((error) => Object(error).code)

describe('a command', () => {
  test('is reported with its app when it begins and when it ends', async ({ desk }) => {
    await desk.ask(app('restart'))
    await desk.ask('home/cmd/speak', 'Hello')
    const runs = desk.runs.map(({ app: id, command, phase }) => `${phase} ${id} ${command.name}`)
    expect(runs).toEqual([`begun ${APP} restart`, `ended ${APP} restart`, 'begun null speak', 'ended null speak'])
    desk.emulated.behave('answer-status', { operation: 'restartApp', status: 503 })
    await desk.ask(app('restart'))
    expect(desk.runs.map(({ phase }) => phase).slice(-2)).toEqual(['begun', 'ended'])
  })

  test.for([
    ['restart', '', true],
    ['enable', '', true],
    ['enabled', 'ON', true],
    ['enabled', 'OFF', false],
    ['disable', '', false],
  ] as const)('is reported with whether it starts the app: %s %s', async ([command, payload, starts], { desk }) => {
    expect(await desk.ask(app(command), payload)).toMatchObject({ ok: true })
    expect(desk.runs.map((run) => run.starts)).toEqual([starts, starts])
  })

  test('is refused immediately if the hub does not support it, or the key lacks its permission, which is named', async () => {
    const desk = await openDesk({ hub: { keys: { key: ['hub.app.readonly'] } } })
    expect(await desk.ask(app('restart'))).toMatchObject({
      error: { code: 'forbidden', message: 'The API key lacks hub.app.' },
    })
    const newer = await openDesk({ hub: { flavour: 'newer' } })
    await newer.ask(app('garbage-collect'))
    newer.emulated.forgetRequests()
    expect(await newer.ask(app('garbage-collect'))).toMatchObject({ error: { code: 'unsupported' } })
    expect([desk.writes(), newer.writes()]).toEqual([[], []])
  })

  test('to read everything again is refused if the hub refuses the list', async ({ desk }) => {
    desk.emulated.behave('answer-status', { operation: 'getApps', status: 403 })
    expect(await desk.ask('home/cmd/refresh')).toMatchObject({
      ok: false,
      error: { code: 'forbidden', message: 'The API key lacks hub.app.readonly.', status: 403 },
    })
  })

  test('is refused immediately while the hub is offline', async ({ desk }) => {
    await desk.emulated.close()
    await until('it is noticed', async () => {
      const { error } = await desk.ask(app('get-locales'))
      return Object(error).message === 'The hub is offline.'
    })
    expect(await desk.ask(app('restart'))).toMatchObject({
      error: { code: 'hub_unreachable', message: 'The hub is offline.' },
    })
  })

  test('waits for the previous one for the same app, and for no other', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('restart'))
    desk.hand(app('restart', 'another.app'))
    desk.hand('home/cmd/speak', 'Hello')
    await until('all', () => desk.sent.length === 4)
    expect(desk.writes().slice(0, 3).sort()).toEqual(['disableApp', 'restartApp', 'say'])
    expect(desk.writes().at(-1)).toBe('restartApp')
  })

  test('that is not allowed is refused immediately, whatever waits before it', async ({ desk }) => {
    desk.world.policy = { ...desk.world.policy, deny: ['autoupdate'] }
    desk.emulated.behave('slow-headers', { ms: 300, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('update'), '{"autoupdate":true}')
    await until('both', () => desk.sent.length === 2)
    expect(codes(desk)).toEqual(['not_allowed', undefined])
  })

  test('is refused behind 32 others, and the hub never has more requests at a time than permitted', async () => {
    const desk = await openDesk({ concurrency: 1 })
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('restart', 'another.app'))
    await until('the first', () => desk.writes().length === 1)
    for (let i = 0; i < 33; i += 1) desk.hand(app('get-setting/x'))
    await until('the answers', () => desk.sent.length === 35)
    expect(codes(desk).filter((code) => code === 'busy')).toHaveLength(1)
    expect(codes(desk)[0]).toBe('busy')
    expect(desk.writes().slice(0, 2)).toEqual(['disableApp', 'restartApp'])
  })
})

describe('when its turn comes', () => {
  test('a command to the hub that installs an app follows the earlier commands of this app', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'restartApp' })
    desk.hand(app('restart'))
    desk.hand('home/cmd/install', JSON.stringify({ id: APP }))
    await until('both', () => desk.sent.length === 2)
    expect(desk.sent.map(({ answer }) => answer['command'])).toEqual(['restart', 'install'])
  })

  test.each([
    ['its permission', 'not_allowed', ({ world }: Desk) => (world.policy = { ...world.policy, deny: ['restart'] })],
    ['its connection', 'expired', ({ world }: Desk) => (world.connection = 2)],
  ])('a command that has lost %s is refused', async (_, code, lose) => {
    const desk = await openDesk()
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'disableApp' })
    desk.hand(app('disable'))
    desk.hand(app('restart'))
    await until('the first', () => desk.writes().length === 1)
    lose(desk)
    await until('both', () => desk.sent.length === 2)
    expect(desk.sent[1]?.answer).toMatchObject({ error: { code } })
    expect(desk.writes()).toEqual(['disableApp'])
    expect(desk.runs).toHaveLength(2)
  })

  test('a write is not sent if the requests before it took too long, or its permission was withdrawn', async () => {
    for (const [lose, code] of [
      [(desk: Desk) => desk.clock.advance(10_000), 'expired'],
      [({ world }: Desk) => (world.policy = { ...world.policy, read_only: true }), 'not_allowed'],
    ] as const) {
      const desk = await openDesk()
      desk.emulated.behave('slow-headers', { ms: 100, operation: 'getApps' })
      desk.hand(app('install'))
      await until('the list', () => desk.operations().includes('getApps'))
      await lose(desk)
      await until('the answer', () => desk.sent.length === 1)
      expect(codes(desk)).toEqual([code])
      expect(desk.writes()).toEqual([])
      expect(desk.failed).toHaveLength(1)
    }
  })

  test('a read is not sent either if its permission was withdrawn', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'getApp', times: 1 })
    desk.hand(app('get'), '{"raw":true}')
    await until('the first read', () => desk.operations().includes('getApp'))
    desk.world.policy = { ...desk.world.policy, deny: ['get'] }
    await until('the answer', () => desk.sent.length === 1)
    expect(codes(desk)).toEqual(['not_allowed'])
    expect(desk.operations()).toEqual(['getApp'])
  })

  test('a read that waits for an identity is not sent without its permission', async ({ desk }) => {
    // After an answer that is not JSON, the bridge checks the hub's identity before the next request.
    desk.emulated.behave('not-json', { operation: 'getAppLocales', times: 1 })
    await desk.ask(app('get-locales'))
    desk.emulated.forgetRequests()
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'ping', times: 1 })
    desk.hand(app('get-locales'))
    await until('it asks', () => desk.operations().includes('ping'))
    desk.world.policy = { ...desk.world.policy, deny: ['get-locales'] }
    await until('the answer', () => desk.sent.length === 2)
    expect(codes(desk)[1]).toBe('not_allowed')
    expect(desk.operations()).toEqual(['ping'])
  })

  test('a read continues although its command may no longer begin', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'getApp', times: 1 })
    desk.hand(app('get'), '{"raw":true}')
    await until('the first read', () => desk.operations().includes('getApp'))
    await desk.clock.advance(10_000)
    await until('the answer', () => desk.sent.length === 1)
    expect(desk.sent[0]?.answer).toMatchObject({ ok: true, data: { raw: { id: APP } } })
  })

  test('the second write of a command is sent although the command may no longer begin', async ({ desk }) => {
    desk.emulated.behave('slow-headers', { ms: 100, operation: 'updateApp' })
    desk.hand(app('update'), '{"autoupdate":false,"channel":"beta"}')
    await until('the first write', () => desk.operations().includes('updateApp'))
    await desk.clock.advance(10_000)
    await until('the second', async () => {
      await desk.clock.advance(1)
      return desk.sent.length === 1
    })
    expect(desk.sent[0]?.answer).toMatchObject({ ok: true })
  })
})

describe('a request that the hub postpones', () => {
  const off = (retryAfterMs?: number) => new HubError('rate_limited', 'later', { status: 429, retryAfterMs })
  const patient = (clock: FakeClock, more: { deadline?: number; check?: () => void; signal?: AbortSignal } = {}) => ({
    clock,
    deadline: 1e9,
    check: () => undefined,
    signal: new AbortController().signal,
    ...more,
  })
  /** Returns a request that fails `times` times, and then resolves to the number of attempts. */
  function request(times: number, error: unknown = off()) {
    let sent = 0
    return () => {
      sent += 1
      return sent > times ? Promise.resolve(sent) : Promise.reject(error)
    }
  }
  async function end<T>(clock: FakeClock, running: Promise<T>): Promise<T> {
    let ended = false
    const stop = () => {
      ended = true
    }
    running.then(stop, stop)
    await clock.advance(0)
    while (!ended) await clock.advance(500)
    return running
  }

  test('is sent again after one, two and four seconds, and then every four', async () => {
    const clock = new FakeClock()
    expect(await end(clock, retryRateLimited(request(5), patient(clock)))).toBe(6)
    expect(clock.waits).toEqual([1000, 2000, 4000, 4000, 4000])
  })

  test('is sent again when the hub asks for it, but not sooner than its own schedule', async () => {
    const clock = new FakeClock()
    await end(clock, retryRateLimited(request(2, off(1500)), patient(clock)))
    expect(clock.waits).toEqual([1500, 2000])
  })

  test('is not sent again at its deadline or later', async () => {
    const clock = new FakeClock()
    const error = off()
    await expect(end(clock, retryRateLimited(request(9, error), patient(clock, { deadline: 3000 })))).rejects.toBe(
      error,
    )
    expect(clock.waits).toEqual([1000, 1900])
    const later = new FakeClock()
    expect(await end(later, retryRateLimited(request(1), patient(later, { deadline: 1001 })))).toBe(2)
  })

  test('is sent again shortly before its deadline, but not sooner than the hub asks for', async () => {
    const clock = new FakeClock()
    expect(await end(clock, retryRateLimited(request(4), patient(clock, { deadline: 10_000 })))).toBe(5)
    expect(clock.waits).toEqual([1000, 2000, 4000, 2900])
    const late = new FakeClock()
    const hurry = patient(late, { deadline: 3000 })
    await expect(end(late, retryRateLimited(request(9, off(2950)), hurry))).rejects.toMatchObject({ message: 'later' })
    expect(late.waits).toEqual([2950])
  })

  test('is not sent again when it is no longer allowed, or when the bridge ends', async () => {
    const clock = new FakeClock()
    const denied = new Error('denied')
    const check = () => {
      throw denied
    }
    await expect(end(clock, retryRateLimited(request(1), patient(clock, { check })))).rejects.toBe(denied)
    const ending = new AbortController()
    const error = off()
    const running = retryRateLimited(request(1, error), patient(clock, { signal: ending.signal }))
    setImmediate(() => ending.abort())
    await expect(running).rejects.toBe(error)
  })

  test('is distinguished from one that fails for another reason', async () => {
    const clock = new FakeClock()
    for (const error of [new HubError('failed', 'x'), new Error('x'), { code: 'rate_limited' }])
      await expect(retryRateLimited(request(1, error), patient(clock))).rejects.toBe(error)
    expect(clock.waits).toEqual([])
  })

  test('is sent again by a command, also for a write, as long as the bridge runs', async ({ desk }) => {
    desk.emulated.behave('answer-status', { status: 429, times: 1, operation: 'restartApp' })
    desk.hand(app('restart'))
    await until('the first', () => desk.clock.pending === 1)
    await desk.clock.advance(1000)
    await until('the answer', () => desk.sent.length === 1)
    expect(desk.sent[0]?.answer).toMatchObject({ ok: true })
    desk.emulated.behave('answer-status', { status: 429, operation: 'restartApp' })
    desk.hand(app('restart'))
    await until('it waits', () => desk.clock.pending === 1)
    void desk.dispatcher.stop()
    await until('the answer', () => desk.sent.length === 2)
    expect(desk.sent[1]?.answer).toMatchObject({ error: { code: 'rate_limited', status: 429 } })
  })
})
