import { describe, expect, test } from 'vitest'
import { type Nats, natsIsBroker, startNats } from '../support/nats.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { answers, type Closing, logged, observe, online, pass, STATE, startHouse, TIMEOUT_MS, works } from './house.ts'

async function cluster({ onTestFinished }: Closing): Promise<Nats> {
  const nats = await startNats({ nodes: 3, mqtt: true })
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

// The cluster needs several seconds to elect new leaders, and more on a busy machine.
describe.skipIf(!natsIsBroker)('NATS as the broker', { timeout: 400_000 }, () => {
  test('the loss of a node causes no offline and loses no events; commands work, and the bridge returns', async (context) => {
    const nats = await cluster(context)
    const house = await startHouse(context)
    const bridge = house.bridge(nats.mqttUrls)
    const observer = await observe(context, nats.node(2).mqttPort)
    await online(observer)
    await answers(observer)
    observer.forget()
    await nats.node(0).kill()
    const app = `hub2mqtt/home/app/${house.app}`
    house.hub.crash(house.app, 'while there was no broker')
    await answers(observer)
    await observer.until('the event', () => observer.last(`${app}/event`)?.includes('"crashed"'), TIMEOUT_MS)
    await observer.until('the state', () => observer.last(app)?.includes('"crashed":true'), TIMEOUT_MS)
    await nats.node(0).restart()
    await nats.untilReady()
    await pass(house, observer, 'a return', () => logged(bridge, 'connected to the', nats.node(0).mqttUrl) === 2)
    await answers(observer)
    expect(observer.texts(STATE)).not.toContain('offline')
    await bridge.stop()
    await observer.until('offline', () => observer.last(STATE) === 'offline', TIMEOUT_MS)
  })

  test('a bridge that dies with its node stays published as online until a standby takes over', async (context) => {
    const nats = await cluster(context)
    const house = await startHouse(context)
    await using way = await TcpProxy.to(nats.node(0).mqttPort)
    house.bridge([`mqtt://127.0.0.1:${way.port}`])
    const observer = await observe(context, nats.node(2).mqttPort)
    await online(observer)
    const standby = house.bridge([nats.node(1).mqttUrl], { MQTT_CLIENT_ID: 'standby' })
    await observer.until('a standby', () => logged(standby, 'this one stands by') > 0, TIMEOUT_MS)
    observer.forget()
    way.refuse(true)
    way.pause()
    await nats.node(0).kill()
    await nats.untilReady()
    await works(observer)
    expect(observer.texts(STATE)).not.toContain('offline')
    await pass(house, observer, 'a takeover', () => logged(standby, 'this one takes over') > 0)
    await answers(observer)
    await observer.until('online again', () => observer.last(STATE) === 'online', TIMEOUT_MS)
    await standby.stop()
    await observer.until('offline', () => observer.last(STATE) === 'offline', TIMEOUT_MS)
  })
})
