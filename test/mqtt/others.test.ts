import { describe, expect } from 'vitest'
import { Observer, retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { settled, startLink, test, withoutMosquitto } from './support.ts'

describe.skipIf(withoutMosquitto).each(['5', '3.1.1'] as const)('under MQTT %s', (protocol) => {
  test('a message that is read back may name more topics to read back', async ({ broker }) => {
    await using other = await Observer.on(broker.port)
    await other.publish('b/app/memory', 'former/+', { retain: true })
    for (const topic of ['former/x', 'former/y', 'foreign/z']) await other.publish(topic, topic, { retain: true })
    await using bridge = startLink({
      url: broker.url,
      protocol,
      onReadBack: (topic, payload) => (topic === 'b/app/memory' ? [payload] : []),
    })
    await until('the connection', () => bridge.link.status().state === 'connected')
    expect(bridge.unowned()).toEqual(['b/app/memory', 'former/x', 'former/y'])
    expect(bridge.link.sweep((topic) => topic === 'former/x')).toBe(1)
    await settled(bridge)
    expect([...(await retainedOn(broker.port)).keys()].sort()).toEqual([
      ...['b/app/memory', 'b/state', 'foreign/z', 'former/y'],
    ])
  })
})

describe.skipIf(withoutMosquitto).each(['5', '3.1.1'] as const)(
  'a connection that starts over (MQTT %s)',
  (protocol) => {
    test('does not publish offline, whatever is in flight, and loses nothing', async ({ broker, observer }) => {
      await using bridge = startLink({ url: broker.url, protocol })
      await settled(bridge)
      for (let round = 1; round <= 4; round += 1) {
        for (let i = 0; i < 100; i += 1) bridge.link.hold(`b/app/${i}`, `round ${round}`)
        bridge.link.send('b/event', `event ${round}`)
        bridge.link.startOver()
        bridge.link.hold('b/app/after', `round ${round}`)
        await settled(bridge, round + 1)
      }
      const states = () => observer.texts('b/state')
      await until('the last online', () => states().length >= 5)
      expect(states()).toEqual(Array.from({ length: 5 }, () => 'online'))
      for (const name of ['0', '99', 'after']) expect(observer.last(`b/app/${name}`)).toBe('round 4')
      for (let round = 1; round <= 4; round += 1) expect(observer.texts('b/event')).toContain(`event ${round}`)
    })

    test('is reported only if the broker still answers, because otherwise it may have published the will', async ({
      proxy,
    }) => {
      const reports: number[] = []
      const handlers = { onStartOver: () => void reports.push(proxy.open) }
      await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}`, protocol, handlers })
      await settled(bridge)
      bridge.link.startOver()
      await settled(bridge, 2)
      expect(reports).toHaveLength(1)
      proxy.pause()
      bridge.link.startOver()
      await until('the end of the connection', () => bridge.link.status().state !== 'connected')
      proxy.heal()
      await settled(bridge, 3)
      expect(reports).toHaveLength(1)
    })

    test('repeats no message that was replaced while there was no connection', async ({ broker, proxy }) => {
      await using observer = await Observer.on(broker.port, { filter: 'b/app/health' })
      const url = `mqtt://127.0.0.1:${proxy.port}`
      await using bridge = startLink({ url, protocol, onConnected: (link) => link.hold('b/app/health', 'connected') })
      await settled(bridge)
      proxy.reset()
      await until('the loss', () => bridge.link.status().reason)
      bridge.link.hold('b/app/health', 'not connected')
      await settled(bridge, 2)
      bridge.link.hold('b/app/health', 'the end')
      await until('the end', () => observer.last('b/app/health') === 'the end')
      expect(observer.texts('b/app/health')).toEqual(['connected', 'the end'])
    })
  },
)
