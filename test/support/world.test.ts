import { describe, expect, test } from 'vitest'
import { BROKERS, Mosquitto, mosquittoPath, startBroker } from './brokers.ts'
import { Observer } from './observer.ts'
import { freePort } from './ports.ts'
import { World } from './world.ts'

const openResources = () =>
  process
    .getActiveResourcesInfo()
    .filter((name) => /^(TCP|Pipe|Process)/.test(name))
    .sort()
const atStart = openResources()
const expectNoLeaks = () => expect.poll(openResources, { interval: 5, timeout: 2000 }).toEqual(atStart)

describe.each(BROKERS)('on %s, a world', (broker) => {
  test('that ends leaves no socket or process', async () => {
    {
      await using world = await World.start({ broker })
      expect(openResources().length).toBeGreaterThan(atStart.length)
      expect((await world.request('bridge/cmd/ping')).ok).toBe(true)
    }
    await expectNoLeaks()
  })

  test('whose bridge refuses its configuration fails with the error, and leaves no socket or process', async () => {
    await expect(World.start({ broker, env: { HUB_URL: 'nonsense' } })).rejects.toThrow('HUB2MQTT_HUB_URL')
    await expectNoLeaks()
  })

  test('whose bridge ends at its start fails with the reason, and leaves no socket or process', async () => {
    {
      await using other = await startBroker('aedes')
      const env = { MQTT_URL: '', MQTT_EMBEDDED_PORT: String(other.port) }
      await expect(World.start({ broker, env })).rejects.toMatchObject({ code: 'port_in_use' })
    }
    await expectNoLeaks()
  })

  test('whose hub cannot listen fails, and leaves no socket or process', async () => {
    const hub = { host: 'no-address-of-this-machine.invalid' }
    await expect(World.start({ broker, hub })).rejects.toThrow('ENOTFOUND')
    await expectNoLeaks()
  })
})

describe.skipIf(mosquittoPath === undefined)('Mosquitto', () => {
  test('that refuses its configuration reports the reason, and leaves nothing', async () => {
    await expect(Mosquitto.start({ config: ['no_such_option 1'] })).rejects.toThrow(/Unknown configuration variable/)
    await expectNoLeaks()
  })

  test('that refuses a login leaves no socket', async () => {
    {
      await using broker = await Mosquitto.start({ users: { me: 'right' } })
      const login = { username: 'me', password: 'wrong' }
      await expect(Observer.on(broker.port, { protocol: '5', ...login })).rejects.toThrow(/not authorized/i)
    }
    await expectNoLeaks()
  })
})

test('an observer without a broker fails, and leaves no socket', async () => {
  await expect(Observer.on(await freePort(), { reconnects: true })).rejects.toThrow('ECONNREFUSED')
  await expectNoLeaks()
})

test('an observer that waits in vain names the condition and the latest messages', async () => {
  await using broker = await startBroker('aedes')
  await using observer = await Observer.on(broker.port)
  await observer.publish('a/topic', 'a text')
  const waiting = observer.until('another', () => observer.last('another'), 50)
  await expect(waiting).rejects.toThrow(/50 ms waiting for another; latest messages:\n {2}a\/topic a text/)
})
