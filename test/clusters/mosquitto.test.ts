/** Two Mosquitto brokers, each of which forwards everything to the other. */
import { describe, expect, test } from 'vitest'
import { withoutMosquitto } from '../mqtt/support.ts'
import { Mosquitto } from '../support/brokers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { answers, type Closing, logged, observe, online, pass, STATE, startHouse, TIMEOUT_MS } from './house.ts'

async function bridged({ onTestFinished }: Closing): Promise<{ first: Mosquitto; second: Mosquitto }> {
  const open = new AsyncDisposableStack()
  onTestFinished(() => open.disposeAsync())
  const first = open.use(await Mosquitto.start())
  const second = open.use(
    await Mosquitto.start({
      config: [
        'connection first',
        `address 127.0.0.1:${first.port}`,
        'topic # both 1',
        'bridge_protocol_version mqttv50',
        'notifications false',
        'restart_timeout 1',
      ],
    }),
  )
  return { first, second }
}

describe.skipIf(withoutMosquitto)('two bridged Mosquittos as the broker', { concurrent: true }, () => {
  test('the bridge moves to the second one and returns to the first, without offline and duplicates', async (context) => {
    const { first, second } = await bridged(context)
    const house = await startHouse(context)
    const bridge = house.bridge([first.url, second.url])
    const observer = await observe(context, second.port, '5')
    await online(observer)
    await answers(observer)
    observer.forget()
    await first.stop('SIGKILL')
    await answers(observer)
    const app = `hub2mqtt/home/app/${house.app}`
    house.hub.crash(house.app, 'meanwhile')
    await observer.until('the event', () => observer.last(`${app}/event`)?.includes('"crashed"'), TIMEOUT_MS)
    const before = [...observer.seen]
    observer.forget()
    await first.run()
    const other = await observe(context, first.port, '5')
    await until('the brokers to be connected again', async () => {
      await other.publish('hub2mqtt/marker', '')
      return observer.last('hub2mqtt/marker') !== undefined
    })
    await pass(house, observer, 'a return', () => logged(bridge, 'connected to the', first.url) === 2)
    await answers(observer)
    const all = [...before, ...observer.seen]
    const texts = (topic: string) => all.filter((seen) => seen.topic === topic).map(({ text }) => text)
    expect(texts(STATE)).not.toContain('offline')
    expect(texts(`${app}/event`)).toHaveLength(1)
    // The bridge stays active, without waiting for another bridge that might have replaced it.
    const asked = observer.texts('hub2mqtt/bridge/presence').filter((text) => text.includes('"asks":true'))
    expect(asked).toEqual([expect.stringContaining('"role":"active"')])
    await online(other)
    await other.until('the state', () => other.last(app)?.includes('"crashed":true'))
  })

  test('a late will from a broker that hung is corrected', async (context) => {
    const { first, second } = await bridged(context)
    const house = await startHouse(context)
    const bridge = house.bridge([first.url, second.url], { MQTT_KEEPALIVE: '1s' })
    const observer = await observe(context, second.port, '5')
    await online(observer)
    observer.forget()
    first.signal('SIGSTOP')
    await observer.until('the other broker', () => logged(bridge, 'connected to the', second.url) === 1, TIMEOUT_MS)
    await answers(observer)
    first.signal('SIGCONT')
    await observer.until('the will', () => observer.texts(STATE).includes('offline'), TIMEOUT_MS)
    await observer.until('online again', () => observer.last(STATE) === 'online', TIMEOUT_MS)
  })

  test('the will of a disconnected bridge reaches clients of the other broker', async (context) => {
    const { first, second } = await bridged(context)
    const house = await startHouse(context)
    await using way = await TcpProxy.to(first.port)
    house.bridge([`mqtt://127.0.0.1:${way.port}`])
    const observer = await observe(context, second.port, '5')
    await online(observer)
    way.cut()
    await observer.until('offline', () => observer.last(STATE) === 'offline', TIMEOUT_MS)
  })
})
