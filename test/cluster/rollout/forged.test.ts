import { readFileSync } from 'node:fs'
import { test as base, describe, expect } from 'vitest'
import { LEADER, ownerOf } from '../../../src/cluster/fleet.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../../support/brokers.ts'
import { APP, Fleet } from '../../support/fleet.ts'
import { Observer } from '../../support/observer.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { until } from '../../support/until.ts'
import { ended, passUntil, restarts, rollOut, test } from './rollouts.ts'

/** Immediately answers each command of a rollout with success. Returns the hubs of these commands. */
async function forge(fleet: Fleet): Promise<string[]> {
  const forged: string[] = []
  const forger = await Observer.on(fleet.broker.port, {
    filter: `hub2mqtt/+/app/${APP}/cmd/restart`,
    onMessage({ topic, text }) {
      const hub = topic.split('/')[1] ?? ''
      const { transaction } = JSON.parse(text)
      const answer = { ok: true, command: 'restart', hub, app: APP, transaction, data: null, duration_ms: 1 }
      void forger.publish(topic.replace('/cmd/', '/result/'), JSON.stringify(answer)).then(() => forged.push(hub))
    },
  })
  fleet.use(forger)
  return forged
}

describe.each(BROKERS)('on %s, a forged answer', (broker) => {
  test('does not complete a step that the hub refuses', async () => {
    await using fleet = await Fleet.open({ broker, hubs: 3 })
    // The hub does not answer, so that the bridge's own answer arrives after the forged answer.
    for (const hub of fleet.hubs.values()) hub.behave('never-answer', { operation: 'restartApp' })
    const forged = await forge(fleet)
    await rollOut(fleet)
    await until('the forged answer', () => forged.length > 0)
    await until('the command', () => restarts(fleet)[0] === 1)
    const end = await passUntil(fleet, 't', ({ state }) => state !== 'running')
    expect(end).toMatchObject({ state: 'stopped', reason: 'canary_failed', done: 0 })
    expect(end.failed).toMatchObject([{ hub: 'h0', code: 'outcome_unknown' }])
    expect(restarts(fleet)).toEqual([1, 0, 0])
  })

  test('does not fail a step that the hub has carried out', async () => {
    await using fleet = await Fleet.open({ broker, hubs: 2 })
    const refuse = { ok: false, transaction: `t/h0/${APP}`, error: { code: 'hub_failed', message: 'no' } }
    await using forger = await Observer.on(fleet.broker.port, {
      filter: `hub2mqtt/h0/app/${APP}/cmd/restart`,
      onMessage: () => void forger.publish(`hub2mqtt/h0/app/${APP}/result/restart`, JSON.stringify(refuse)),
    })
    fleet.hub('h0').behave('slow-headers', { ms: 1_000, operation: 'restartApp' })
    await rollOut(fleet)
    expect(await ended(fleet)).toMatchObject({ state: 'done', done: 2, failed: [] })
  })
})

describe('in a fleet', () => {
  test('a rollout restarts the apps on the hubs of all members, each by its own member', async () => {
    await using fleet = await Fleet.build({ hubs: 6 })
    fleet.begin({ FLEET_SHARD: '1/2' })
    fleet.begin({ FLEET_SHARD: '2/2' })
    await fleet.online()
    await rollOut(fleet, { batch: 5 })
    expect(await ended(fleet)).toMatchObject({ state: 'done', done: 6, failed: [] })
    expect(restarts(fleet)).toEqual([1, 1, 1, 1, 1, 1])
    expect(new Set(fleet.owners().values()).size).toBe(2)
  })

  test('a step does not fail because the broker declares its member offline: the member answers when it is back', async () => {
    await using fleet = await Fleet.build({ hubs: 6 })
    const line = fleet.use(await TcpProxy.to(fleet.broker.port))
    const names = ['shard-1', 'shard-2']
    const leader = ownerOf(LEADER, names)
    const own = [...fleet.hubs.keys()].find((name) => ownerOf(name, names) !== leader) ?? ''
    const other = ownerOf(own, names)
    const at = { MQTT_URL: `mqtt://127.0.0.1:${line.port}` }
    for (const [i, name] of names.entries()) fleet.begin({ FLEET_SHARD: `${i + 1}/2`, ...(name === other && at) })
    await fleet.online()
    fleet.hub(own).behave('slow-headers', { ms: 1_000, times: 1, operation: 'restartApp' })
    await rollOut(fleet, { hubs: own })
    await until('the restart', () => restarts(fleet).includes(1))
    line.refuse(true)
    line.reset()
    await until('the will', () => fleet.observer.last(`hub2mqtt/bridge/${other}/state`) === 'offline')
    line.heal()
    expect(await ended(fleet)).toMatchObject({ state: 'done', done: 1, failed: [] })
    expect(restarts(fleet).filter((times) => times > 0)).toEqual([1])
  })
})

base.skipIf(mosquittoPath === undefined)('config/mosquitto/acl lets only the bridge publish answers', async () => {
  const acl = readFileSync('config/mosquitto/acl', 'utf8').split('\n')
  const users = { hub2mqtt: 'a', homeassistant: 'a', button: 'a' }
  await using broker = await Mosquitto.start({ acl, users })
  const login = { password: 'a', protocol: '5' } as const
  await using bridge = await Observer.on(broker.port, { ...login, username: 'hub2mqtt', filter: 'hub2mqtt/#' })
  const results = ['home/result/speak', `home/app/${APP}/result/restart`, 'home/app/a/result/set-setting/b']
  const publish = async (username: string) => {
    await using client = await Observer.on(broker.port, { ...login, username, filter: 'hub2mqtt/home/app/+/event' })
    for (const result of results) await client.publish(`hub2mqtt/${result}`, username).catch(() => {})
  }
  for (const username of ['homeassistant', 'button', 'hub2mqtt']) await publish(username)
  for (const result of results) {
    await until('an answer of the bridge', () => bridge.last(`hub2mqtt/${result}`))
    expect(bridge.texts(`hub2mqtt/${result}`)).toEqual(['hub2mqtt'])
  }
})
