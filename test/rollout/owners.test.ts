/** The record on the broker: who goes on from it, and what becomes of it. */
import { describe, expect, test } from 'vitest'
import { Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { APP, BROKER, RESTART, Street } from './street.ts'

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

test('the bridge that stands by goes on when the active one ends', async () => {
  const street = await Street.build({ broker: BROKER, houses: 3 })
  const first = await street.bridge()
  const second = street.begin()
  await until('two bridges', () => second.lines.some((line) => line.includes('this one stands by')))
  await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  await first.stop()
  await until('the other one', () => second.lines.some((line) => line.includes('rollout under way')))
  const end = await street.passUntil('t', ({ state }) => state !== 'running')
  expect(end).toMatchObject({ state: 'done', done: 3, failed: [] })
  expect(street.asked()).toEqual([1, 1, 1])
})

test('a record that others clear or write over is put right with the next step', async () => {
  const street = await Street.build({ broker: BROKER, houses: 2 })
  await street.bridge()
  await street.ask('rollout', { ...RESTART, pause: '20s', transaction: 't' })
  await street.until('t', ({ current }) => current[0]?.phase === 'answered')
  for (const text of ['', '{"state":"cancelled"}']) {
    await street.observer.publish('hub2mqtt/rollout/t', text, { retain: true })
  }
  const end = await street.passUntil('t', ({ state }) => state === 'done')
  expect(end).toMatchObject({ done: 2, failed: [] })
  expect(street.asked()).toEqual([1, 1])
})

test('the records of 20 rollouts stay, those of earlier ones are cleared, and none is swept by a bridge that starts', {
  timeout: 60_000,
}, async () => {
  const street = await Street.build({ broker: BROKER, houses: 1 })
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
    // Of the first asking or of the second, which ran nothing.
    expect(answers.at(-1)).toMatchObject({ ok: true, transaction: `t/h0/${APP}` })
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
