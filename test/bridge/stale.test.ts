/** Of the safety list, what only shows with a clock that can be turned or a connection that can be cut. */
import { describe, expect, test } from 'vitest'
import { replayKey } from '../../src/bridge/replay.ts'
import type { Message } from '../../src/mqtt/types.ts'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

describe.concurrent.each(BROKERS)('on %s', (broker) => {
  test('a command that has waited ten seconds behind another is refused, not executed', async () => {
    await using world = await World.start({ broker, env: { HUB_TIMEOUT: '1m' } })
    world.hub.behave('never-answer', { operation: 'restartApp' })
    const topic = `home/app/${world.app}/cmd/restart`
    await world.observer.publish(`hub2mqtt/${topic}`, '{"transaction":"first"}')
    await until('the first command', () => world.asked('restartApp') === 1)
    const second = world.ask(topic, '{"transaction":"second"}')
    await world.ask('bridge/cmd/ping')
    world.clock.jump(5_000)
    await world.ask('bridge/cmd/ping')
    expect(world.observer.texts(`hub2mqtt/home/app/${world.app}/result/restart`)).toEqual([])
    world.clock.jump(5_000)
    expect(await second).toMatchObject({ ok: false, transaction: 'second', error: { code: 'expired' } })
    expect(world.asked('restartApp')).toBe(1)
  })

  test('a command whose time passes while another request holds the connection to the hub is refused', async () => {
    await using world = await World.start({ broker, env: { HUB_TIMEOUT: '1m', HUB_MAX_REQUESTS: '1' } })
    const { hub, clock, observer } = world
    const reads = () => hub.requests.filter(({ operation }) => operation === 'getApps').length
    const before = reads()
    hub.behave('dripping-body', { operation: 'getApps', ms: 20, bytes: 40 })
    await world.ask('bridge/cmd/refresh')
    await until('a slow read', () => reads() > before)
    const command = world.ask(`home/app/${world.app}/cmd/restart`, '{"transaction":"waits"}')
    await world.ask('bridge/cmd/ping')
    expect(observer.texts(`hub2mqtt/home/app/${world.app}/result/restart`)).toEqual([])
    clock.jump(11_000)
    expect(await command).toMatchObject({ ok: false, transaction: 'waits', error: { code: 'expired' } })
    expect(world.asked('restartApp')).toBe(0)
  })
})

describe.skipIf(mosquittoPath === undefined)('while the connection to the broker is lost', { concurrent: true }, () => {
  test('what is sent is not executed later', async () => {
    const broker = await Mosquitto.start()
    await using proxy = await TcpProxy.to(broker.port)
    await using world = await World.start({ broker, env: { MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` } })
    const { observer, app } = world
    proxy.refuse(true)
    proxy.reset()
    await until('the will', () => observer.last('hub2mqtt/bridge/state') === 'offline')
    await observer.publish(`hub2mqtt/home/app/${app}/cmd/restart`, '')
    proxy.refuse(false)
    await until('the bridge', () => observer.last('hub2mqtt/bridge/state') === 'online')
    expect((await world.ask(`home/app/${app}/cmd/get`)).ok).toBe(true)
    expect(world.asked('restartApp')).toBe(0)
  })
})

describe.concurrent('a command without a mark of its own', () => {
  const message: Message = {
    topic: 'hub2mqtt/home/cmd/speak',
    payload: Buffer.from('Hello'),
    retain: false,
    dup: false,
    qos: 1,
    receivedAt: 0,
    connection: 1,
  }

  test('is the same one again only when the broker says that it repeats it', () => {
    expect(replayKey(message, null).consult).toBe(false)
    const again = replayKey({ ...message, dup: true }, null)
    expect(again).toEqual({ text: replayKey(message, null).text, consult: true })
    const other = replayKey({ ...message, payload: Buffer.from('Goodbye'), dup: true }, null)
    expect(other.text).not.toBe(again.text)
  })

  test('is never taken for one that has a mark, whatever bytes it is made of', () => {
    const marked = [
      replayKey(message, 'Hello'),
      replayKey({ ...message, correlationData: Buffer.from('Hello') }, null),
      replayKey(message, 7),
      replayKey(message, '7'),
      replayKey(message, null),
    ]
    expect(new Set(marked.map(({ text }) => text)).size).toBe(5)
  })
})
