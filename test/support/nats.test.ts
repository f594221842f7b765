import { describe, expect, it } from 'vitest'
import { natsPath, startNats } from './nats.ts'
import { accepts } from './ports.ts'

describe.skipIf(natsPath === undefined)('NATS for tests', () => {
  it('a cluster survives the loss of one node, which can return', async () => {
    await using nats = await startNats({ nodes: 3, mqtt: true })
    expect(nats.urls).toHaveLength(3)
    const first = nats.node(0)
    expect(await accepts(first.mqttPort)).toBe(true)
    await first.kill()
    expect(first.runs).toBe(false)
    expect(await accepts(first.port)).toBe(false)
    await nats.untilReady()
    await first.restart()
    expect(await accepts(first.mqttPort)).toBe(true)
    nats.node(1).stop()
    expect(nats.node(1).runs).toBe(false)
    nats.node(1).cont()
    await nats.untilReady()
  })
})
