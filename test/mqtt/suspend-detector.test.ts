import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { SuspendDetector } from '../../src/mqtt/suspend-detector.ts'
import { Mosquitto, mosquittoPath, startBroker, WITH_PROTOCOLS } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Observer } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { settled, startLink } from './support.ts'

/** Creates a system clock that can jump without running timers, as the system's clock does after a suspension. */
function sleepyClock() {
  let ahead = 0
  let wallAhead = 0
  let suspended = 0
  return {
    ...systemClock,
    now: () => Date.now() + wallAhead,
    elapsed: () => performance.now() + ahead,
    uptime: () => performance.now() + ahead + suspended,
    /** Jumps like the clocks of a process after SIGSTOP and SIGCONT. */
    stop(ms: number) {
      ahead += ms
      wallAhead += ms
    },
    /** Jumps like the clocks of a machine after its suspension, during which the monotonic clock stops. */
    suspend(ms: number) {
      wallAhead += ms
      suspended += ms
    },
    set(ms: number) {
      wallAhead += ms
    },
  }
}

describe.each(WITH_PROTOCOLS)('on %s under MQTT %s, a suspended link', (kind, protocol) => {
  // Mosquitto sends twenty commands at a time, and waits for their acknowledgements.
  const start = () => (kind === 'mosquitto' ? Mosquitto.start() : startBroker(kind))

  test.each(['stop', 'suspend'] as const)('adds the suspended time to the age of messages: %s', async (how) => {
    await using broker = await start()
    await using proxy = await TcpProxy.to(broker.port)
    await using other = await Observer.on(broker.port)
    const clock = sleepyClock()
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}`, protocol, clock })
    await settled(bridge)
    proxy.pause()
    for (let i = 0; i < 100; i += 1) await other.publish('b/hub/cmd/go', String(i))
    clock[how](15_000)
    proxy.heal()
    await until('all of them', () => bridge.messages.length === 100)
    const now = clock.elapsed()
    expect(bridge.messages.filter(({ receivedAt }) => now - receivedAt < 15_000)).toEqual([])
    expect(bridge.messages.filter((message) => bridge.link.isCurrent(message))).toEqual([])
  })

  test('treats later messages as new', async () => {
    await using broker = await start()
    await using other = await Observer.on(broker.port)
    const clock = sleepyClock()
    await using bridge = startLink({ url: broker.url, protocol, clock })
    await settled(bridge)
    clock.stop(15_000)
    const age = await until('a new one', async () => {
      const before = clock.elapsed()
      await other.publish('b/hub/cmd/go', '')
      const message = await until('the message', () => bridge.messages.shift())
      return message.receivedAt >= before && bridge.link.isCurrent(message)
    })
    expect(age).toBe(true)
    expect(bridge.connected()).toBe(1)
  })
})

describe.skipIf(mosquittoPath === undefined)('if own messages are not sent back', () => {
  test('a suspended link reconnects, because messages on a new connection are not old', async () => {
    const acl = ['topic readwrite b/state', 'topic read b/hub/cmd/#', 'topic write b/hub/cmd/#']
    await using broker = await Mosquitto.start({ acl })
    const clock = sleepyClock()
    await using bridge = startLink({ url: broker.url, clock, probeTimeoutMs: 500 })
    await settled(bridge)
    clock.stop(15_000)
    await until('the second connection', () => bridge.connected() === 2, 10_000)
  })
})

describe('a suspension', () => {
  test('is not detected while the clock advances step by step, however long', async () => {
    const clock = new FakeClock()
    const seen: number[] = []
    const detector = new SuspendDetector(clock, () => seen.push(clock.elapsed()))
    detector.start()
    await clock.advance(60_000)
    expect(seen).toEqual([])
    expect(detector.arrivedAt()).toBe(60_000)
    detector.stop()
    expect(clock.pending).toBe(0)
  })

  test('of less than two seconds is a busy process, and changes nothing', () => {
    const clock = sleepyClock()
    const detector = new SuspendDetector(clock, () => {})
    detector.start()
    clock.stop(1_500)
    expect(clock.elapsed() - detector.arrivedAt()).toBeLessThan(1_000)
    detector.stop()
  })

  test('of seconds only adds to the age of messages', () => {
    const clock = sleepyClock()
    const detector = new SuspendDetector(clock, () => {})
    detector.start()
    const before = clock.elapsed()
    clock.stop(5_000)
    expect(detector.arrivedAt()).toBeLessThanOrEqual(before)
    expect(detector.outdates(before)).toBe(false)
    detector.ended()
    expect(detector.arrivedAt()).toBeGreaterThan(before + 4_999)
    detector.stop()
  })

  test.each([-3_600_000, 3_600_000])('is not detected when the wall clock is set by %d ms', (ms) => {
    const clock = sleepyClock()
    const detector = new SuspendDetector(clock, () => expect.unreachable())
    detector.start()
    clock.set(ms)
    detector.check()
    expect(detector.isUncertain).toBe(false)
    detector.stop()
  })
})
