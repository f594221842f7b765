import { describe, expect, test } from 'vitest'
import { BROKERS, startBroker } from './brokers.ts'
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

  test('whose bridge ends at its start fails with the reason, and leaves no socket or process', async () => {
    {
      await using other = await startBroker('aedes')
      const env = { MQTT_URL: '', MQTT_EMBEDDED_PORT: String(other.port) }
      await expect(World.start({ broker, env })).rejects.toMatchObject({ code: 'port_in_use' })
    }
    await expectNoLeaks()
  })
})
