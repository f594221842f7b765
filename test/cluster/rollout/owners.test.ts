/** Tests how the record of a rollout is kept on the broker, and which process continues the rollout from its record. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { plan } from '../../../src/cluster/rollout/record.ts'
import { BridgeProcess } from '../../support/bridge-process.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { APP, Fleet } from '../../support/fleet.ts'
import { retainedOn } from '../../support/observer.ts'
import { until } from '../../support/until.ts'
import {
  answered,
  ended,
  pass,
  passUntil,
  RESTART,
  restarts,
  rollOut,
  rolloutOf,
  test,
  untilRollout,
} from './rollouts.ts'

/** A time that is longer than the bridge waits before it restores a record. */
const RESTORE_MS = 5_000

test('a rollout is finished by the next process after the first was killed', async () => {
  await using fleet = await Fleet.build({ hubs: 4 })
  const config = await fleet.write(fleet.config())
  const start = () => fleet.use(new BridgeProcess({ config, env: { HUB2MQTT_HTTP_ENABLED: 'false' } }))
  const first = start()
  await fleet.online()
  await rollOut(fleet, { batch: 2 })
  await untilRollout(fleet, 't', ({ done, current }) => done >= 1 && current.some(({ phase }) => phase === 'answered'))
  await first.stop('SIGKILL')
  const record = rolloutOf(fleet, 't')
  start()
  expect(await ended(fleet)).toMatchObject({ state: 'done', done: 4 })
  // Each hub received the command once, or perhaps twice if its step has no answer in the record.
  const unsure = new Set(record?.current.filter(({ phase }) => phase === 'sent').map(({ hub }) => hub))
  for (const [i, times] of restarts(fleet).entries()) {
    expect(times).toBeGreaterThanOrEqual(1)
    expect(times).toBeLessThanOrEqual(unsure.has(`h${i}`) ? 2 : 1)
  }
})

test('a record that is found while rollouts are not allowed stays unchanged until a reload allows them', async () => {
  await using fleet = await Fleet.build({ hubs: 2, config: { commands: {} } })
  const apps = [...fleet.hubs.keys()].map((hub) => ({ hub, app: APP, enabled: true }))
  const record = JSON.stringify(plan('t', RESTART, apps, new Date().toISOString()))
  await fleet.observer.publish('hub2mqtt/rollout/t', record, { retain: true })
  const bridge = await fleet.bridge()
  await fleet.ask('ping', {})
  expect(fleet.observer.last('hub2mqtt/rollout/t')).toBe(record)
  bridge.reload(fleet.config({ commands: { allow: ['bridge/rollout'] } }))
  expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2, failed: [] })
  expect(restarts(fleet)).toEqual([1, 1])
})

describe.each(BROKERS)('on %s', (broker) => {
  test('records that other clients clear or overwrite are restored within seconds: of a running rollout, and of those that ended here or earlier', async () => {
    await using fleet = await Fleet.build({ broker, hubs: 2 })
    const first = await fleet.bridge()
    for (const transaction of ['earlier', 'here']) {
      await begin(fleet, { transaction })
      await ended(fleet, transaction)
      if (transaction === 'earlier') await first.stop()
      if (transaction === 'earlier') await fleet.bridge()
    }
    await begin(fleet, { pause: '2m', transaction: 'runs' })
    const { updated_at } = await answered(fleet, 'runs')
    const records = await recordsOn(fleet)
    expect([...records.keys()].sort()).toEqual(['earlier', 'here', 'runs'])
    for (const text of ['', '{"state":"cancelled"}']) {
      for (const transaction of records.keys()) {
        await fleet.observer.publish(`hub2mqtt/rollout/${transaction}`, text, { retain: true })
      }
      await restored(fleet, records)
    }
    expect(rolloutOf(fleet, 'runs')?.updated_at).toBe(updated_at)
    const end = await passUntil(fleet, 'runs', ({ done }) => done > 0)
    expect(end.failed).toEqual([])
    // The bridge repeats an unchanged record only to restore it, which takes two publishes if the PUBACK is late.
    const texts = fleet.observer.texts('hub2mqtt/rollout/here').filter((text) => text.length > 30)
    const repeats = texts.length - new Set(texts).size
    expect(repeats).toBeGreaterThanOrEqual(2)
    expect(repeats).toBeLessThanOrEqual(4)
  })
})

describe.skipIf(mosquittoPath === undefined)('in the middle of a pause', () => {
  test('a broker that returns empty gets all records again, and the rollout continues', async () => {
    const mosquitto = await Mosquitto.start()
    await using fleet = await Fleet.open({ broker: mosquitto, hubs: 2 })
    await begin(fleet, { hubs: 'h1', transaction: 'ended' })
    await ended(fleet, 'ended')
    await begin(fleet, { pause: '2m' })
    await answered(fleet)
    const records = await recordsOn(fleet)
    const { onlines } = fleet
    await mosquitto.stop('SIGKILL')
    await mosquitto.run()
    await fleet.online(onlines)
    await restored(fleet, records)
    const end = await passUntil(fleet, 't', ({ state }) => state !== 'running')
    expect(end).toMatchObject({ state: 'done', done: 2, failed: [] })
    expect(restarts(fleet)).toEqual([1, 2])
  })

  test('a change of the rollout by another bridge is not overwritten', async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    await using fleet = await Fleet.open({ broker: mosquitto, hubs: 2 })
    await rollOut(fleet, { pause: '1h' })
    const before = await answered(fleet)
    const updated_at = new Date(Date.parse(before.updated_at) + 1).toISOString()
    const after = { ...before, updated_at, state: 'cancelled', reason: 'cancelled', current: [], done: 1 }
    const restart = async (config: string[]) => {
      await mosquitto.stop()
      await mosquitto.configure({ persistent: true, config })
      await mosquitto.run()
      await until('the observer', () => fleet.observer.ready)
    }
    await restart(['clientid_prefixes observer-'])
    await fleet.observer.publish('hub2mqtt/rollout/t', JSON.stringify(after), { retain: true })
    const { onlines } = fleet
    await restart([])
    await fleet.online(onlines)
    await begin(fleet, { transaction: 'u' })
    await ended(fleet, 'u')
    expect((await recordsOn(fleet)).get('t')).toBe(JSON.stringify(after))
  })
})

test('the records of 20 rollouts stay, older ones are cleared, and none is swept by a bridge that starts', async () => {
  await using fleet = await Fleet.build({ hubs: 1 })
  const first = await fleet.bridge()
  await rollOut(fleet, { transaction: 'r' })
  const record = await ended(fleet, 'r')
  const day = (i: number) => `2026-01-${String(i + 1).padStart(2, '0')}T00:00:00.000Z`
  for (let i = 0; i < 22; i += 1) {
    const old = { ...record, transaction: `old-${i}`, started_at: day(i), updated_at: day(i) }
    await fleet.observer.publish(`hub2mqtt/rollout/old-${i}`, JSON.stringify(old), { retain: true })
  }
  await fleet.observer.publish('hub2mqtt/rollout/foreign', 'somebody', { retain: true })
  await first.stop()
  await fleet.bridge()
  await rollOut(fleet, { transaction: 's' })
  await ended(fleet, 's')
  await until('a clear broker', async () => (await recordsOn(fleet)).size === 21)
  expect([...(await recordsOn(fleet)).keys()].sort()).toEqual(
    ['foreign', 'r', 's', ...Array.from({ length: 18 }, (_, i) => `old-${i + 4}`)].sort(),
  )
})

/** Repeats the order until it is accepted, because the bridge detects the end of the previous rollout with a delay. */
async function begin(fleet: Fleet, order: object): Promise<void> {
  await until('the rollout to be taken', async () => (await rollOut(fleet, order)).ok)
}

/** Moves the clock until the broker holds the records again. */
async function restored(fleet: Fleet, records: ReadonlyMap<string, string>): Promise<void> {
  await until('the records', async () => {
    await pass(fleet, RESTORE_MS)
    return isDeepStrictEqual(await recordsOn(fleet), records)
  })
}

/** Resolves to the records, keyed by the name of the rollout in the topic. */
async function recordsOn({ broker: { port } }: Fleet): Promise<Map<string, string>> {
  const prefix = 'hub2mqtt/rollout/'
  const held = [...(await retainedOn(port))].filter(([topic]) => topic.startsWith(prefix))
  return new Map(held.map(([topic, text]) => [topic.slice(prefix.length), text]))
}

describe.skipIf(mosquittoPath === undefined)('a broker', () => {
  test('that is lost while a hub works loses no answer: the hub executes the step once', async () => {
    const mosquitto = await Mosquitto.start({ persistent: true })
    await using fleet = await Fleet.open({ broker: mosquitto, hubs: 2 })
    fleet.hub('h0').behave('slow-headers', { ms: 2_000, times: 1, operation: 'restartApp' })
    await rollOut(fleet)
    await until('the restart', () => restarts(fleet)[0] === 1)
    await mosquitto.stop()
    await mosquitto.run()
    expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2 })
    expect(restarts(fleet)).toEqual([1, 1])
    const answers = fleet.observer.texts(`hub2mqtt/h0/app/${APP}/result/restart`).map((text) => JSON.parse(text))
    // This is the answer to the first command, or to the repeated command, which executed nothing.
    expect(answers.at(-1)).toMatchObject({ ok: true, transaction: `t/h0/${APP}` })
  })

  test.for(['5', '3.1.1'])('that refuses the record, with MQTT %s: nothing is started', async (protocol) => {
    const mosquitto = await Mosquitto.start({ acl: ['topic readwrite #', 'topic deny hub2mqtt/rollout/#'] })
    await using fleet = await Fleet.open({ broker: mosquitto, hubs: 1, env: { MQTT_PROTOCOL: protocol } })
    const answer = await rollOut(fleet)
    expect(answer.error?.code).toBe('not_allowed')
    expect(restarts(fleet)).toEqual([0])
  })
})
