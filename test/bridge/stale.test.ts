/** Tests the rules of the contract's safety list that need a controlled clock or connection. */
import { describe, expect, test } from 'vitest'
import { BROKERS, Mosquitto, mosquittoPath } from '../support/brokers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'

describe.concurrent.each(BROKERS)('on %s', (broker) => {
  test('a command that expires while another request occupies the connection to the hub is refused', async () => {
    await using world = await World.start({ broker, env: { HUB_TIMEOUT: '1m', HUB_MAX_REQUESTS: '1' } })
    const { hub, clock, observer } = world
    const reads = () => hub.requests.filter(({ operation }) => operation === 'getApps').length
    const before = reads()
    hub.behave('dripping-body', { operation: 'getApps', ms: 20, bytes: 40 })
    await world.request('bridge/cmd/refresh')
    await until('a slow read', () => reads() > before)
    const command = world.request(`home/app/${world.app}/cmd/restart`, '{"transaction":"waits"}')
    await world.request('bridge/cmd/ping')
    expect(observer.texts(`hub2mqtt/home/app/${world.app}/result/restart`)).toEqual([])
    clock.jump(11_000)
    expect(await command).toMatchObject({ ok: false, transaction: 'waits', error: { code: 'expired' } })
    expect(world.requestCount('restartApp')).toBe(0)
  })
})

describe.skipIf(mosquittoPath === undefined)('while the connection to the broker is lost', { concurrent: true }, () => {
  test('a command that is sent is not executed later', async () => {
    const broker = await Mosquitto.start()
    await using proxy = await TcpProxy.to(broker.port)
    await using world = await World.start({ broker, env: { MQTT_URL: `mqtt://127.0.0.1:${proxy.port}` } })
    const { observer, app } = world
    proxy.cut()
    await until('the will', () => observer.last('hub2mqtt/bridge/state') === 'offline')
    await observer.publish(`hub2mqtt/home/app/${app}/cmd/restart`, '')
    proxy.refuse(false)
    await until('the bridge', () => observer.last('hub2mqtt/bridge/state') === 'online')
    expect((await world.request(`home/app/${app}/cmd/get`)).ok).toBe(true)
    expect(world.requestCount('restartApp')).toBe(0)
  })
})
