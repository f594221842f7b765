import { describe, expect, onTestFinished, test } from 'vitest'
import { Addresses } from '../../src/mqtt/addresses.ts'
import { CLOSED_BY_US } from '../../src/mqtt/connection.ts'
import { failbackProbe } from '../../src/mqtt/connection-loop.ts'
import type { LinkHandlers } from '../../src/mqtt/types.ts'
import { Mosquitto, startBroker } from '../support/brokers.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Observer } from '../support/observer.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { portOf, settled, silent, startAedes, startLink, withoutMosquitto } from './support.ts'

const TOPICS = { stateTopic: '', probeTopic: '', subscriptions: [], retainedFilters: [] }
const UNREACHABLE = { code: 'unreachable', detail: '' } as const

describe('the order of the addresses', () => {
  function addressesOf(...urls: string[]) {
    const clock = new FakeClock()
    const link = { ...TOPICS, urls, clientId: 'c' }
    return { clock, addresses: new Addresses(link, { clock, log: silent, random: () => 1 }) }
  }

  test('is the order of the list, and then that of their back-off', async () => {
    const { clock, addresses } = addressesOf('mqtt://a', 'mqtt://b')
    const tried = []
    for (let i = 0; i < 6; i += 1) {
      const { url } = addresses.current
      const wait = addresses.next(UNREACHABLE, undefined)
      tried.push([url, wait])
      await clock.advance(wait)
    }
    // After its first, second and third failure, an address is not tried again for 1, 2 and 4 s.
    expect(tried).toEqual([
      ['mqtt://a', 0],
      ['mqtt://b', 1000],
      ['mqtt://a', 0],
      ['mqtt://b', 2000],
      ['mqtt://a', 0],
      ['mqtt://b', 4000],
    ])
  })

  test('starts with the preferred one again when the current connection is lost', async () => {
    const { clock, addresses } = addressesOf('mqtt://a', 'mqtt://b', 'mqtt://c')
    addresses.next(UNREACHABLE, undefined)
    expect(addresses.current.url).toBe('mqtt://b')
    expect(addresses.preferred?.url).toBe('mqtt://a')
    await clock.advance(10_000)
    expect(addresses.next(CLOSED_BY_US, { livedMs: 10_000, protocol: '5', explained: false })).toBe(0)
    expect(addresses.current.url).toBe('mqtt://a')
    expect(addresses.preferred).toBeUndefined()
  })

  test('stays at the same address after a takeover, which would happen at every node of a cluster', () => {
    const { addresses } = addressesOf('mqtt://a', 'mqtt://b')
    const ended = { livedMs: 100, protocol: '5', explained: false } as const
    expect(addresses.next({ code: 'taken_over', detail: '' }, ended)).toBe(5000)
    expect(addresses.current.url).toBe('mqtt://a')
  })

  test('names an address in the log only if there are several, and without credentials', () => {
    expect(addressesOf('mqtt://a').addresses.name).toBeUndefined()
    expect(addressesOf('mqtt://u:secret@a', 'mqtt://b').addresses.name).toBe('mqtt://a')
  })
})

describe.skipIf(withoutMosquitto)('two independent brokers', () => {
  test('the second one gets everything when the first one fails, each in its version of MQTT', async () => {
    await using first = await Mosquitto.start()
    await using second = await startBroker('aedes')
    await using observer = await Observer.on(second.port)
    await using bridge = startLink({ urls: [first.url, second.url] })
    bridge.link.hold('b/app/x', 'held')
    await settled(bridge)
    expect(bridge.link.status().protocol).toBe('5')
    await first.stop('SIGKILL')
    bridge.link.send('b/event', 'happened meanwhile')
    await until('online at the other one', () => observer.last('b/state') === 'online')
    expect(observer.last('b/app/x')).toBe('held')
    await until('the event', () => observer.last('b/event') === 'happened meanwhile')
    expect(bridge.link.status()).toMatchObject({ protocol: '3.1.1', reconnects: 1 })
    const [{ message: connected = '' } = {}] = bridge.log.lines.filter(({ level }) => level === 'info').slice(-1)
    expect(connected).toContain(`connected to the MQTT broker at ${second.url}`)
    expect(bridge.log.loud).toEqual([expect.stringContaining(`connection to the MQTT broker at ${first.url} lost`)])
  })
})

describe('the preferred address', () => {
  /** Connects to the second of two addresses of one broker, which simulate two nodes of a cluster. */
  async function atTheSecond(handlers: LinkHandlers = {}) {
    const open = new AsyncDisposableStack()
    onTestFinished(() => open.disposeAsync())
    const broker = open.use(await startAedes())
    const first = open.use(await TcpProxy.to(portOf(broker.url)))
    const second = open.use(await TcpProxy.to(portOf(broker.url)))
    const urls = [first, second].map(({ port }) => `mqtt://127.0.0.1:${port}`)
    const bridge = open.use(startLink({ urls, preferredAfterMs: 100, protocol: '3.1.1', handlers }))
    await settled(bridge)
    first.cut()
    await settled(bridge, 2)
    expect([first.open, second.open]).toEqual([0, 1])
    const observer = open.use(await Observer.on(portOf(broker.url), { filter: 'b/#' }))
    await until('online', () => observer.last('b/state') === 'online')
    observer.forget()
    return { first, second, bridge, observer }
  }

  test('is used again when it is reachable, without offline, and nothing is lost', async () => {
    const sent: string[] = []
    const onStartOver = () => {
      sent.push(`event ${sent.length}`)
      bridge.link.send('b/event', sent.at(-1) ?? '')
      bridge.link.hold('b/app/x', 'changed meanwhile')
    }
    const { first, second, bridge, observer } = await atTheSecond({ onStartOver: () => onStartOver() })
    const before = first.accepted
    await until('two failed probes', () => first.accepted >= before + 2)
    expect(second.open).toBe(1)
    first.refuse(false)
    await settled(bridge, 3)
    await until('the event', () => observer.last('b/event') === 'event 0')
    await until('the state', () => observer.last('b/app/x') === 'changed meanwhile')
    await until('the end of the probe', () => first.open === 1 && second.open === 0)
    expect(sent).toEqual(['event 0'])
    expect(observer.texts('b/state')).not.toContain('offline')
    expect(bridge.link.status()).toMatchObject({ state: 'connected', queued: 0, unacknowledged: 0 })
    expect(bridge.log.loud).toHaveLength(1)
  })

  test('is used again only when no command is in progress', async () => {
    let asked = 0
    const isBusy = () => {
      asked += 1
      return asked < 3
    }
    const { first, bridge } = await atTheSecond({ isBusy })
    first.refuse(false)
    await settled(bridge, 3)
    expect(asked).toBe(3)
  })

  test('may hang when the link ends, and does not delay the end', async () => {
    const { first, bridge } = await atTheSecond()
    first.swallow('down')
    first.refuse(false)
    await until('a probe', () => first.open === 1)
    await bridge.link.close({ deadlineMs: 60_000 })
    // Closing the link must end the probe, which would otherwise give up only after ten seconds.
    await until('the last connection to end', () => first.open === 0, 5_000)
  })

  test('is probed less often if the connection is lost soon after each return', async () => {
    await using broker = await startAedes()
    const clock = new FakeClock()
    let opened = 0
    const onOpen = () => {
      opened += 1
    }
    const link = { ...TOPICS, urls: [broker.url], clientId: 'c', preferredAfterMs: 1000 }
    const lookout = failbackProbe({ link, clock, random: () => 0.5, isBusy: () => false }, onOpen)
    const intervals: number[] = []
    for (let i = 0; i < 7; i += 1) {
      lookout.start(broker.url)
      intervals.push(clock.waits.at(-1) ?? 0)
      await clock.advance(intervals.at(-1) ?? 0)
      await until('the address to be open', () => opened === i + 1)
    }
    expect(intervals).toEqual([1000, 2000, 4000, 8000, 16_000, 16_000, 16_000])
    await clock.advance(1000)
    lookout.start(broker.url)
    expect(clock.waits.at(-1)).toBe(1000)
    lookout.stop()
  })
})
