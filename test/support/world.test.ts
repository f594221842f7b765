import { describe, expect, test } from 'vitest'
import { BROKERS } from './brokers.ts'
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
})
