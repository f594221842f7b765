import { describe, expect, test } from 'vitest'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { APP, Street } from './street.ts'

/** Longer than the apps of a last wave are watched. */
const SHORT_PAUSE_MS = 6_000
const RESTART = { command: 'restart', app: APP, pause: '1s' } as const

describe.each(BROKERS)('on %s', (broker) => {
  test('restarts an app on every hub: one first, then batch by batch', async () => {
    const street = await Street.build({ broker, houses: 5 })
    await street.bridge()
    const answer = await street.ask('rollout', { ...RESTART, batch: 3, transaction: 't/1' })
    expect(answer).toMatchObject({ ok: true, transaction: 't/1', data: { transaction: 't/1', total: 5 } })
    const end = await street.ended('t/1')
    expect(end).toMatchObject({ state: 'done', reason: null, total: 5, done: 5, failed: [], current: [] })
    expect(street.asked()).toEqual([1, 1, 1, 1, 1])
    const records = street.observer.texts('hub2mqtt/rollout/t%2F1').map((text) => JSON.parse(text))
    const waves = new Set(records.map(({ current }) => current.map(({ hub }: { hub: string }) => hub).join()))
    expect([...waves].filter((hubs) => ['h0', 'h1,h2,h3', 'h4'].includes(hubs))).toEqual(['h0', 'h1,h2,h3', 'h4'])
    for (const { current, done } of records) expect(current.length).toBeLessThanOrEqual(done === 0 ? 1 : 3)
  })

  test('a canary that fails ends it, and nothing else is restarted', async () => {
    const street = await Street.build({ broker, houses: 3 })
    await street.bridge()
    street.hub('h0').behave('answer-status', { status: 503, operation: 'restartApp' })
    await street.ask('rollout', { ...RESTART, stop_after_failures: 5, transaction: 't' })
    const end = await street.ended('t')
    expect(end).toMatchObject({ state: 'stopped', reason: 'canary_failed', done: 0 })
    expect(end.failed).toMatchObject([{ hub: 'h0', app: APP, code: 'hub_failed' }])
    expect(street.asked().slice(1)).toEqual([0, 0])
  })

  test('an app that crashes within the pause has failed', async () => {
    const street = await Street.build({ broker, houses: 3 })
    await street.bridge()
    await street.ask('rollout', { ...RESTART, pause: '1h', transaction: 't' })
    await street.until('t', ({ current }) => current[0]?.phase === 'answered')
    street.hub('h0').crash(APP)
    const end = await street.ended('t')
    expect(end).toMatchObject({ state: 'stopped', reason: 'canary_failed' })
    expect(end.failed).toMatchObject([{ hub: 'h0', app: APP, code: 'crashed' }])
    expect(street.asked()).toEqual([1, 0, 0])
  })

  test('goes on where it was when the bridge is started again', { timeout: 60_000 }, async () => {
    const street = await Street.build({ broker, houses: 6 })
    const first = await street.bridge()
    await street.ask('rollout', { ...RESTART, batch: 2, transaction: 't' })
    const left = await street.until('t', ({ done }) => done >= 1)
    await first.stop()
    const record = street.rollout('t')
    expect(record?.state).toBe('running')
    await street.bridge()
    const end = await street.ended('t')
    expect(end).toMatchObject({ state: 'done', total: 6, done: 6, started_at: left.started_at })
    // Only a step without an answer on the record is sent a second time.
    const unsure = new Set(record?.current.filter(({ phase }) => phase === 'sent').map(({ hub }) => hub))
    for (const [i, times] of street.asked().entries()) {
      expect(times).toBeGreaterThanOrEqual(1)
      expect(times).toBeLessThanOrEqual(unsure.has(`h${i}`) ? 2 : 1)
    }
  })
})

const broker = mosquittoPath === undefined ? 'aedes' : 'mosquitto'

test('counts failures after the canary, and ends at the one too many', async () => {
  const street = await Street.build({ broker, houses: 7 })
  await street.bridge()
  for (const name of ['h1', 'h3', 'h4']) {
    street.hub(name).behave('answer-status', { status: 503, operation: 'restartApp' })
  }
  await street.ask('rollout', { ...RESTART, batch: 2, stop_after_failures: 2, transaction: 't' })
  const end = await street.ended('t')
  expect(end).toMatchObject({ state: 'stopped', reason: 'failures', done: 2 })
  expect(end.failed.map(({ hub }) => hub).sort()).toEqual(['h1', 'h3', 'h4'])
  expect(street.asked().slice(5)).toEqual([0, 0])
})

test('a cancelled rollout ends after the steps that are under way', async () => {
  const street = await Street.build({ broker, houses: 4 })
  await street.bridge()
  await street.ask('rollout', { ...RESTART, pause: '1h', batch: 2, transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  const answer = await street.ask('rollout-cancel', { transaction: 't' })
  expect(answer).toMatchObject({ ok: true, command: 'rollout-cancel', data: { transaction: 't', total: 4 } })
  expect(street.rollout('t')?.reason).toBe('cancelled')
  street.clock.jump(SHORT_PAUSE_MS)
  const end = await street.ended('t')
  expect(end).toMatchObject({ state: 'cancelled', reason: 'cancelled', done: 1, failed: [] })
  expect(street.asked()).toEqual([1, 0, 0, 0])
  const again = await street.ask('rollout-cancel', { transaction: 't' })
  expect(again.data).toEqual({ transaction: 't', state: 'cancelled', done: 1, total: 4 })
  expect((await street.ask('rollout-cancel', { transaction: 'u' })).error?.code).toBe('invalid_payload')
})

test('an update is installed the same way', async () => {
  const street = await Street.build({ broker, houses: 2, apps: [{ id: APP, version: '1.0.0', update: '2.0.0' }] })
  await street.bridge()
  await street.ask('rollout', { ...RESTART, command: 'install', transaction: 't' })
  expect(await street.ended('t')).toMatchObject({ state: 'done', done: 2 })
  for (const hub of street.hubs.values()) expect(hub.apps.get(APP)?.version).toBe('2.0.0')
})

test('one rollout at a time; the same order again is the same rollout', async () => {
  const street = await Street.build({ broker, houses: 2 })
  await street.bridge()
  const code = async (order: object) => (await street.ask('rollout', order)).error?.code ?? 'ok'
  expect(await code({ ...RESTART, app: 'no.such.app', transaction: 'a' })).toBe('unknown_app')
  expect(await code({ ...RESTART, hubs: 'h9', transaction: 'b' })).toBe('unknown_app')
  expect(await code(RESTART)).toBe('invalid_payload')
  expect(await code({ ...RESTART, transaction: 'state' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, batch: 0, transaction: 'c' })).toBe('invalid_payload')
  expect(await code({ ...RESTART, command: 'uninstall', transaction: 'd' })).toBe('invalid_payload')
  const order = { ...RESTART, pause: '1h', transaction: 't' }
  expect(await code(order)).toBe('ok')
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  expect(await code({ ...order, transaction: 'u' })).toBe('busy')
  expect(await street.ask('rollout', order)).toMatchObject({ ok: true, replayed: true })
  await street.ask('rollout-cancel', { transaction: 't' })
  street.clock.jump(SHORT_PAUSE_MS)
  await street.ended('t')
  expect(await code({ ...RESTART, transaction: 'u' })).toBe('ok')
  await street.ended('u')
  expect(street.asked()).toEqual([2, 1])
})

test('the records of 20 rollouts stay, those of earlier ones are cleared, and none is swept by a bridge that starts', {
  timeout: 60_000,
}, async () => {
  const street = await Street.build({ broker, houses: 1 })
  const first = await street.bridge()
  await street.ask('rollout', { ...RESTART, transaction: 'r' })
  const record = await street.ended('r')
  const day = (i: number) => `2026-01-${String(i + 1).padStart(2, '0')}T00:00:00.000Z`
  for (let i = 0; i < 22; i += 1) {
    const old = { ...record, transaction: `old-${i}`, started_at: day(i), updated_at: day(i) }
    await street.observer.publish(`hub2mqtt/rollout/old-${i}`, JSON.stringify(old), { retain: true })
  }
  await street.observer.publish('hub2mqtt/rollout/foreign', 'somebody', { retain: true })
  await first.stop()
  await street.bridge()
  await street.ask('rollout', { ...RESTART, transaction: 's' })
  await street.ended('s')
  await until('a clear broker', async () => (await rollouts(street)).length === 21)
  expect(await rollouts(street)).toEqual(
    ['foreign', 'r', 's', ...Array.from({ length: 18 }, (_, i) => `old-${i + 4}`)].sort(),
  )
})

const rollouts = async ({ broker: { port } }: Street) =>
  [...(await retainedOn(port)).keys()].flatMap((topic) => /^hub2mqtt\/rollout\/(.*)$/.exec(topic)?.[1] ?? []).sort()

describe('rights', () => {
  test.each([
    ['{}', 'It is off until commands.allow names bridge/rollout.'],
    ['{allow: [bridge/rollout], deny: [rollout]}', 'commands.deny names bridge/rollout.'],
    ['{allow: [bridge/rollout], deny: [restart]}', 'commands.deny names restart.'],
    ['{allow: [bridge/rollout], read_only: true}', 'commands.read_only is set.'],
  ])('commands: %s', async (commands, message) => {
    const street = await Street.build({ broker, houses: 1, commands })
    await street.bridge()
    const answer = await street.ask('rollout', { ...RESTART, transaction: 't' })
    expect(answer.error).toMatchObject({ code: 'not_allowed', message })
    expect(street.asked()).toEqual([0])
  })

  test('that are taken away end it before the next wave', async () => {
    const street = await Street.build({ broker, houses: 3 })
    const bridge = await street.bridge()
    await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
    await street.until('t', ({ current }) => current[0]?.phase === 'answered')
    bridge.reload(street.file('{allow: [bridge/rollout], deny: [restart]}'))
    await street.pass(20_000)
    expect(await street.ended('t')).toMatchObject({ state: 'stopped', reason: 'not_allowed', done: 1, failed: [] })
    expect(street.asked()).toEqual([1, 0, 0])
  })
})

test.skipIf(mosquittoPath === undefined)(
  'is finished by the next process after the first was killed in the middle',
  { timeout: 120_000 },
  async () => {
    const street = await Street.build({ broker: 'mosquitto', houses: 6 })
    const first = await street.process()
    await street.online()
    await street.ask('rollout', { ...RESTART, batch: 2, transaction: 't' })
    await street.until('t', ({ done, current }) => done >= 1 && current.some(({ phase }) => phase === 'answered'))
    await first.stop('SIGKILL')
    const record = street.rollout('t')
    await street.process()
    expect(await street.until('t', ({ state }) => state !== 'running', 60_000)).toMatchObject({
      state: 'done',
      done: 6,
    })
    const unsure = new Set(record?.current.filter(({ phase }) => phase === 'sent').map(({ hub }) => hub))
    for (const [i, times] of street.asked().entries()) {
      expect(times).toBeGreaterThanOrEqual(1)
      expect(times).toBeLessThanOrEqual(unsure.has(`h${i}`) ? 2 : 1)
    }
  },
)

test('a hub that is offline for a moment gets its step later', async () => {
  const street = await Street.build({ broker, houses: 2 })
  await street.bridge()
  const back = street.hub('h0').reboot({ downMs: 5_000 })
  await until('offline', () => street.observer.last('hub2mqtt/h0/state') === 'offline')
  await street.ask('rollout', { ...RESTART, transaction: 't' })
  await street.until('t', ({ current }) => current.length === 1)
  await back
  expect(await street.ended('t')).toMatchObject({ state: 'done', done: 2, failed: [] })
})

test('an app that does not run a minute after the pause has failed', async () => {
  const street = await Street.build({ broker, houses: 2 })
  await street.bridge()
  await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  street.hub('h0').change(APP, { state: 'stopped' })
  await until('the news', () => street.observer.last(`hub2mqtt/h0/app/${APP}`)?.includes('"stopped"'))
  await street.pass(75_000)
  expect(street.rollout('t')?.state).toBe('running')
  await street.pass(10_000)
  const end = await street.ended('t')
  expect(end.failed).toMatchObject([{ hub: 'h0', code: 'not_running' }])
  expect(street.asked()).toEqual([1, 0])
})

test('a record that others clear or write over is put right with the next step', async () => {
  const street = await Street.build({ broker, houses: 2 })
  await street.bridge()
  await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  for (const text of ['', '{"state":"cancelled"}']) {
    await street.observer.publish('hub2mqtt/rollout/t', text, { retain: true })
  }
  await street.pass(20_000)
  await street.until('t', ({ current, done }) => done === 1 && current[0]?.phase === 'answered')
  await street.pass(20_000)
  expect(await street.ended('t')).toMatchObject({ state: 'done', done: 2 })
  expect(street.asked()).toEqual([1, 1])
})

test('the bridge that stands by goes on when the active one ends', async () => {
  const street = await Street.build({ broker, houses: 3 })
  const first = await street.bridge()
  const second = street.begin()
  await until('two bridges', () => second.lines.some((line) => line.includes('this one stands by')))
  await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  await first.stop()
  await until('the other one', () => second.lines.some((line) => line.includes('rollout under way')))
  await street.pass(20_000)
  await street.until('t', ({ done, current }) => done === 1 && current.every(({ phase }) => phase === 'answered'))
  await street.pass(20_000)
  expect(await street.ended('t')).toMatchObject({ state: 'done', done: 3, failed: [] })
  expect(street.asked()).toEqual([1, 1, 1])
})

describe.skipIf(mosquittoPath === undefined)('a broker', () => {
  test('that goes away while a hub works loses no answer: the hub is not asked twice', async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    const street = await Street.build({ broker: mosquitto, houses: 2 })
    await street.bridge()
    street.hub('h0').behave('slow-headers', { ms: 2_000, times: 1, operation: 'restartApp' })
    await street.ask('rollout', { ...RESTART, transaction: 't' })
    await until('the restart', () => street.asked()[0] === 1)
    await mosquitto.stop()
    await mosquitto.run()
    expect(await street.ended('t')).toMatchObject({ state: 'done', done: 2 })
    expect(street.asked()).toEqual([1, 1])
    const answers = street.observer.texts(`hub2mqtt/h0/app/${APP}/result/restart`).map((text) => JSON.parse(text))
    expect(answers.at(-1)).toMatchObject({ ok: true, transaction: `t/h0/${APP}`, replayed: true })
  })

  test.each(['5', '3.1.1'])('that does not take the record, with MQTT %s: nothing is begun', async (protocol) => {
    const mosquitto = await Mosquitto.start({ acl: ['topic readwrite #', 'topic deny hub2mqtt/rollout/#'] })
    const street = await Street.build({ broker: mosquitto, houses: 1, env: { MQTT_PROTOCOL: protocol } })
    await street.bridge()
    const answer = await street.ask('rollout', { ...RESTART, transaction: 't' })
    expect(answer.error?.code).toBe('not_allowed')
    expect(street.asked()).toEqual([0])
  })
})
