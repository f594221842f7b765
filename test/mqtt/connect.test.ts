import { describe, expect } from 'vitest'
import { startEmbeddedBroker } from '../../src/mqtt/embedded.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Observer } from '../support/observer.ts'
import { freePort } from '../support/ports.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { portOf, settled, silent, startAedes, startLink, test, withoutMosquitto } from './support.ts'

describe('with the embedded broker', () => {
  test('is online under 3.1.1 after one fallback from 5, without a warning, and reconnects with 3.1.1', async () => {
    await using broker = await startAedes()
    await using proxy = await TcpProxy.to(portOf(broker.url))
    await using observer = await Observer.on(portOf(broker.url))
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await until('online', () => observer.last('b/state') === 'online')
    expect(bridge.link.status()).toMatchObject({ state: 'connected', protocol: '3.1.1', probe: 'ok', reconnects: 0 })
    expect(proxy.accepted).toBe(2)
    expect(bridge.log.loud).toEqual([])
    proxy.reset()
    await settled(bridge, 2)
    expect(proxy.accepted).toBe(3)
  })
})

describe.skipIf(withoutMosquitto)('with Mosquitto', () => {
  test('speaks MQTT over WebSocket', async () => {
    const port = await freePort()
    await using broker = await Mosquitto.start({ config: [`listener ${port} 127.0.0.1`, 'protocol websockets'] })
    await using observer = await Observer.on(broker.port)
    await using bridge = startLink({ url: `ws://127.0.0.1:${port}` })
    bridge.link.hold('b/app/x', 'a'.repeat(100_000))
    await until('online', () => observer.last('b/state') === 'online')
    expect(observer.last('b/app/x')).toHaveLength(100_000)
  })

  test('survives a broker that becomes silent while many messages are in flight, and reconnects', async ({ proxy }) => {
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}`, keepaliveMs: 1000 })
    await settled(bridge)
    proxy.pause()
    for (let i = 0; i < 20; i += 1) bridge.link.hold(`b/app/${i}`, 'here')
    await until('the end of the silent connection', () => bridge.link.status().reconnects === 1)
    proxy.resume()
    await settled(bridge, 2)
    expect(bridge.link.status()).toMatchObject({ state: 'connected', unacknowledged: 0 })
  })

  test('the broker publishes offline when the connection is cut', async ({ proxy, observer }) => {
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await until('online', () => observer.last('b/state') === 'online')
    proxy.cut()
    await until('offline', () => observer.last('b/state') === 'offline')
    proxy.refuse(false)
    await until('online again', () => observer.last('b/state') === 'online')
    expect(bridge.log.loud.filter((line) => line.includes('lost'))).toHaveLength(1)
    expect(bridge.log.lines.at(-1)).toMatchObject({
      level: 'info',
      message: expect.stringMatching(/again after [\d.]+ s/),
    })
  })

  test('starts before the broker, logs that once, and is online when the broker starts', async () => {
    const port = await freePort()
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${port}` })
    await until('a second attempt', () => bridge.attempts() >= 2)
    expect(bridge.link.status()).toMatchObject({ reason: 'unreachable', protocol: null })
    expect(bridge.log.loud).toHaveLength(1)
    await using broker = await startEmbeddedBroker({ host: '127.0.0.1', port, commandFilters: [] }, silent)
    await settled(bridge)
    expect(broker.url).toContain(String(port))
  })

  test('at a stop, offline is sent first, then waiting messages, and no will after them', async ({ broker }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/#' })
    await using bridge = startLink({ url: broker.url })
    await until('online', () => observer.last('b/state') === 'online')
    const before = observer.seen.length
    for (let i = 0; i < 100; i += 1) bridge.link.send('b/event', String(i))
    await bridge.link.close({ deadlineMs: 5000 })
    await until('the last event', () => observer.last('b/event') === '99')
    const after = observer.seen.slice(before).map(({ topic }) => topic)
    // Before `offline`, the link sends at most the events that fit into one send window.
    expect(after.indexOf('b/state')).toBeLessThanOrEqual(20)
    expect(after.filter((topic) => topic === 'b/state')).toHaveLength(1)
    expect(observer.last('b/state')).toBe('offline')
    expect(bridge.link.status()).toMatchObject({ state: 'stopped', queued: 0, unacknowledged: 0 })
  })

  test('the broker publishes offline if it hangs before it has received all answers', async ({ broker, proxy }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/#' })
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await until('online', () => observer.last('b/state') === 'online')
    proxy.pause()
    for (let i = 0; i < 500; i += 1) bridge.link.send(`b/result/${i}`, 'x', { isAnswer: true })
    await bridge.link.close({ deadlineMs: 300 })
    proxy.resume()
    await until('offline', () => observer.last('b/state') === 'offline')
  })

  test('a stop keeps its deadline when the broker hangs, and may be requested twice', async ({ proxy }) => {
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await settled(bridge)
    proxy.pause()
    const start = performance.now()
    await Promise.all([bridge.link.close({ deadlineMs: 300 }), bridge.link.close({ deadlineMs: 300 })])
    expect(performance.now() - start).toBeLessThan(2000)
    expect(bridge.link.status().state).toBe('stopped')
    proxy.resume()
    await until('the socket to close', () => proxy.open === 0)
  })

  test('a stop while connecting opens no other connection', async ({ proxy }) => {
    proxy.pause()
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await until('the connection', () => proxy.accepted === 1)
    await bridge.link.close({ deadlineMs: 5000 })
    proxy.resume()
    await until('the socket to close', () => proxy.open === 0)
    expect(proxy.accepted).toBe(1)
  })
})
