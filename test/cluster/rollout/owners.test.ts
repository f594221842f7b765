/** Tests how the record of a rollout is kept on the broker, and which process continues the rollout from its record. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { plan } from '../../../src/cluster/rollout/record.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { retainedOn } from '../../support/observer.ts'
import { until } from '../../support/until.ts'
import { APP, RESTART, Street, test } from './street.ts'

/** A time that is longer than the bridge waits before it restores a record. */
const RESTORE_MS = 5_000

test('a rollout is finished by the next process after the first was killed', async () => {
  await using street = await Street.build({ houses: 4 })
  const first = await street.process()
  await street.online()
  await street.rollOut({ batch: 2 })
  await street.until('t', ({ done, current }) => done >= 1 && current.some(({ phase }) => phase === 'answered'))
  await first.stop('SIGKILL')
  const record = street.rollout('t')
  await street.process()
  expect(await street.ended()).toMatchObject({ state: 'done', done: 4 })
  street.expectRepeated(record)
})

test('a rollout is continued by the bridge on standby when the active one ends', async () => {
  await using street = await Street.build({ houses: 3 })
  const first = await street.bridge()
  const second = street.begin()
  await until('two bridges', () => second.lines.some((line) => line.includes('this one stands by')))
  await street.rollOut({ pause: '20s' })
  await street.answered()
  await first.stop()
  await until('the other one', () => second.lines.some((line) => line.includes('rollout running')))
  const end = await street.passUntil('t', ({ state }) => state !== 'running')
  expect(end).toMatchObject({ state: 'done', done: 3, failed: [] })
  expect(street.asked()).toEqual([1, 1, 1])
})

test('a record that is found while rollouts are not allowed stays unchanged until a reload allows them', async () => {
  await using street = await Street.build({ houses: 2, commands: '{}' })
  const apps = [...street.hubs.keys()].map((hub) => ({ hub, app: APP, enabled: true }))
  const record = JSON.stringify(plan('t', RESTART, apps, new Date().toISOString()))
  await street.observer.publish('hub2mqtt/rollout/t', record, { retain: true })
  const bridge = await street.bridge()
  await street.ask('ping', {})
  expect(street.observer.last('hub2mqtt/rollout/t')).toBe(record)
  bridge.reload(street.file('{allow: [bridge/rollout]}'))
  expect(await street.ended()).toMatchObject({ state: 'done', done: 2, failed: [] })
  expect(street.asked()).toEqual([1, 1])
})

describe.each(BROKERS)('on %s', (broker) => {
  test('records that other clients clear or overwrite are restored within seconds: of a running rollout, and of those that ended here or earlier', async () => {
    await using street = await Street.build({ broker, houses: 2 })
    const first = await street.bridge()
    for (const transaction of ['earlier', 'here']) {
      await begin(street, { transaction })
      await street.ended(transaction)
      if (transaction === 'earlier') await first.stop()
      if (transaction === 'earlier') await street.bridge()
    }
    await begin(street, { pause: '2m', transaction: 'runs' })
    const { updated_at } = await street.answered('runs')
    const records = await recordsOn(street)
    expect([...records.keys()].sort()).toEqual(['earlier', 'here', 'runs'])
    for (const text of ['', '{"state":"cancelled"}']) {
      for (const transaction of records.keys()) {
        await street.observer.publish(`hub2mqtt/rollout/${transaction}`, text, { retain: true })
      }
      await restored(street, records)
    }
    expect(street.rollout('runs')?.updated_at).toBe(updated_at)
    const end = await street.passUntil('runs', ({ done }) => done > 0)
    expect(end.failed).toEqual([])
    // The bridge repeats an unchanged record only to restore it, which takes two publishes if the PUBACK is late.
    const texts = street.observer.texts('hub2mqtt/rollout/here').filter((text) => text.length > 30)
    const repeats = texts.length - new Set(texts).size
    expect(repeats).toBeGreaterThanOrEqual(2)
    expect(repeats).toBeLessThanOrEqual(4)
  })
})

describe.skipIf(mosquittoPath === undefined)('in the middle of a pause', () => {
  test('a broker that returns empty gets all records again, and the rollout continues', async () => {
    const mosquitto = await Mosquitto.start()
    await using street = await Street.open({ broker: mosquitto, houses: 2 })
    await begin(street, { hubs: 'h1', transaction: 'ended' })
    await street.ended('ended')
    await begin(street, { pause: '2m' })
    await street.answered()
    const records = await recordsOn(street)
    const { onlines } = street
    await mosquitto.stop('SIGKILL')
    await mosquitto.run()
    await street.online(onlines)
    await restored(street, records)
    const end = await street.passUntil('t', ({ state }) => state !== 'running')
    expect(end).toMatchObject({ state: 'done', done: 2, failed: [] })
    expect(street.asked()).toEqual([1, 2])
  })

  test('a change of the rollout by another bridge is not overwritten', async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    await using street = await Street.open({ broker: mosquitto, houses: 2 })
    await street.rollOut({ pause: '1h' })
    const before = await street.answered()
    const updated_at = new Date(Date.parse(before.updated_at) + 1).toISOString()
    const after = { ...before, updated_at, state: 'cancelled', reason: 'cancelled', current: [], done: 1 }
    const restart = async (config: string[]) => {
      await mosquitto.stop()
      await mosquitto.configure({ persistent: true, config })
      await mosquitto.run()
      await until('the observer', () => street.observer.ready)
    }
    await restart(['clientid_prefixes observer-'])
    await street.observer.publish('hub2mqtt/rollout/t', JSON.stringify(after), { retain: true })
    const { onlines } = street
    await restart([])
    await street.online(onlines)
    await begin(street, { transaction: 'u' })
    await street.ended('u')
    expect((await recordsOn(street)).get('t')).toBe(JSON.stringify(after))
  })
})

test('the records of 20 rollouts stay, older ones are cleared, and none is swept by a bridge that starts', async () => {
  await using street = await Street.build({ houses: 1 })
  const first = await street.bridge()
  await street.rollOut({ transaction: 'r' })
  const record = await street.ended('r')
  const day = (i: number) => `2026-01-${String(i + 1).padStart(2, '0')}T00:00:00.000Z`
  for (let i = 0; i < 22; i += 1) {
    const old = { ...record, transaction: `old-${i}`, started_at: day(i), updated_at: day(i) }
    await street.observer.publish(`hub2mqtt/rollout/old-${i}`, JSON.stringify(old), { retain: true })
  }
  await street.observer.publish('hub2mqtt/rollout/foreign', 'somebody', { retain: true })
  await first.stop()
  await street.bridge()
  await street.rollOut({ transaction: 's' })
  await street.ended('s')
  await until('a clear broker', async () => (await recordsOn(street)).size === 21)
  expect([...(await recordsOn(street)).keys()].sort()).toEqual(
    ['foreign', 'r', 's', ...Array.from({ length: 18 }, (_, i) => `old-${i + 4}`)].sort(),
  )
})

/** Repeats the order until it is accepted, because the bridge detects the end of the previous rollout with a delay. */
async function begin(street: Street, order: object): Promise<void> {
  await until('the rollout to be taken', async () => (await street.rollOut(order)).ok)
}

/** Moves the clock until the broker holds the records again. */
async function restored(street: Street, records: ReadonlyMap<string, string>): Promise<void> {
  await until('the records', async () => {
    await street.pass(RESTORE_MS)
    return isDeepStrictEqual(await recordsOn(street), records)
  })
}

/** Resolves to the records, keyed by the name of the rollout in the topic. */
async function recordsOn({ broker: { port } }: Street): Promise<Map<string, string>> {
  const prefix = 'hub2mqtt/rollout/'
  const held = [...(await retainedOn(port))].filter(([topic]) => topic.startsWith(prefix))
  return new Map(held.map(([topic, text]) => [topic.slice(prefix.length), text]))
}

describe.skipIf(mosquittoPath === undefined)('a broker', () => {
  test('that is lost while a hub works loses no answer: the hub executes the step once', async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    await using street = await Street.open({ broker: mosquitto, houses: 2 })
    street.hub('h0').behave('slow-headers', { ms: 2_000, times: 1, operation: 'restartApp' })
    await street.rollOut()
    await until('the restart', () => street.asked()[0] === 1)
    await mosquitto.stop()
    await mosquitto.run()
    expect(await street.ended()).toMatchObject({ state: 'done', done: 2 })
    expect(street.asked()).toEqual([1, 1])
    const answers = street.observer.texts(`hub2mqtt/h0/app/${APP}/result/restart`).map((text) => JSON.parse(text))
    // This is the answer to the first command, or to the repeated command, which executed nothing.
    expect(answers.at(-1)).toMatchObject({ ok: true, transaction: `t/h0/${APP}` })
  })

  test.for(['5', '3.1.1'])('that refuses the record, with MQTT %s: nothing is started', async (protocol) => {
    const mosquitto = await Mosquitto.start({ acl: ['topic readwrite #', 'topic deny hub2mqtt/rollout/#'] })
    await using street = await Street.open({ broker: mosquitto, houses: 1, env: { MQTT_PROTOCOL: protocol } })
    const answer = await street.rollOut()
    expect(answer.error?.code).toBe('not_allowed')
    expect(street.asked()).toEqual([0])
  })
})
