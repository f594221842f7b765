import { describe, expect, test } from 'vitest'
import { startBroker, WITH_PROTOCOLS } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { settled, startLink } from './support.ts'

const watchedFilters = ['b/app/+', 'b/state']

describe.each(WITH_PROTOCOLS)('on %s under MQTT %s', (kind, protocol) => {
  test('own states, changes, clears and messages are not reported as those of other clients, also after a restart', async () => {
    await using broker = await startBroker(kind)
    await using other = await Observer.on(broker.port)
    await using bridge = startLink({ url: broker.url, protocol, watchedFilters })
    for (let i = 0; i < 300; i += 1) bridge.link.hold(`b/app/${i}`, 'first')
    await settled(bridge)
    for (let round = 0; round < 5; round += 1) {
      for (let i = 0; i < 300; i += 1) bridge.link.hold(`b/app/${i}`, `round ${round}`)
      await settled(bridge)
      bridge.link.refresh(['b/state', 'b/app/1'])
    }
    bridge.link.send('b/app/2', 'not retained')
    for (let i = 0; i < 300; i += 2) bridge.link.hold(`b/app/${i}`, null)
    await settled(bridge)
    await other.publish('b/app/end', 'x')
    const isEnd = ({ topic }: { readonly topic: string }) => topic === 'b/app/end'
    await until('the end', () => bridge.touched.some(isEnd))
    expect(bridge.touched).toEqual([{ topic: 'b/app/end', payload: 'x' }])
    await bridge.link.close({ deadlineMs: 2000 })
    await using restarted = startLink({ url: broker.url, protocol, watchedFilters })
    for (let i = 1; i < 300; i += 2) restarted.link.hold(`b/app/${i}`, 'round 4')
    await settled(restarted)
    // The read-back found the messages, so no publish was needed.
    expect(restarted.link.status().publishes).toBe(1)
    await other.publish('b/app/end', 'x')
    await until('the end', () => restarted.touched.some(isEnd))
    expect(restarted.touched).toEqual([{ topic: 'b/app/end', payload: 'x' }])
  })

  test('changes and clears by others are reported and can be repaired, and their additional messages can be swept', async () => {
    await using broker = await startBroker(kind)
    await using other = await Observer.on(broker.port)
    await using bridge = startLink({ url: broker.url, protocol, watchedFilters })
    bridge.link.hold('b/app/a', 'a')
    bridge.link.hold('b/app/b', 'b')
    await settled(bridge)
    await other.publish('b/app/a', '', { retain: true })
    await other.publish('b/app/b', 'forged', { retain: true })
    await other.publish('b/app/theirs', 'left', { retain: true })
    await other.publish('b/state', 'offline', { retain: true })
    await until('all four', () => bridge.touched.length >= 4)
    expect(bridge.touched.map(({ topic, payload }) => `${topic} ${payload}`).sort()).toEqual([
      ...['b/app/a ', 'b/app/b forged', 'b/app/theirs left', 'b/state offline'],
    ])
    bridge.link.refresh(['b/app/a', 'b/app/b', 'b/state'])
    expect(bridge.link.sweep((topic) => topic === 'b/app/theirs')).toBe(1)
    await until('a', () => other.last('b/app/a') === 'a')
    await until('b', () => other.last('b/app/b') === 'b')
    await until('the state', () => other.last('b/state') === 'online')
    await until('their topic', () => other.last('b/app/theirs') === '')
    expect(bridge.touched).toHaveLength(4)
  })
})
