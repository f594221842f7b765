import { describe, expect } from 'vitest'
import { Mosquitto } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { settled, startLink, type TestLink, test, withoutMosquitto } from './support.ts'

const LIMIT = 4096
/** Each limit makes the broker close the connection. Under MQTT 5, it sends a reason first, which may be lost. */
const LIMITED = [
  ['5', [`message_size_limit ${LIMIT}`, 'max_queued_messages 0']],
  ['3.1.1', [`max_packet_size ${LIMIT}`]],
] as const

describe.skipIf(withoutMosquitto)('Mosquitto that ends the connection at 4,096 bytes', { timeout: 60_000 }, () => {
  test.each(LIMITED)('sees at most one offline, gets all messages that fit (MQTT %s, %s)', async (protocol, config) => {
    const broker = await Mosquitto.start({ config })
    const ids = Array.from({ length: 40 }, (_, i) => `app.number-${i}`)
    const hub = { flavour: 'newer', apps: ids.map((id) => ({ id })) } as const
    await using world = await World.start({ broker, hub, env: { MQTT_PROTOCOL: protocol } })
    const { bridge, observer } = world
    const named = () => bridge.lines.filter((line) => line.includes('"reason":"too_large"')).length
    // The log names only ten of the messages.
    await observer.until('the messages that do not fit', () => named() === 10, 20_000)
    await observer.until('online', () => observer.last('hub2mqtt/bridge/state') === 'online', 20_000)
    const held = await retainedOn(broker.port)
    for (const id of ids) expect(held.get(`hub2mqtt/home/app/${id}`)).toContain(`"id":"${id}"`)
    // The discovery messages of the bridge and of the hub fit. Those of the apps are too large.
    expect([...held.keys()].filter((topic) => topic.startsWith('homeassistant/'))).toHaveLength(2)
    await world.request('bridge/cmd/ping')
    const offline = observer.texts('hub2mqtt/bridge/state').filter((text) => text === 'offline')
    expect(offline.length).toBeLessThanOrEqual(1)
    expect(named()).toBe(10)
  })

  /** Waits until all messages are sent or refused. Resolves to the broker's retained messages. */
  async function through(bridge: TestLink, broker: Mosquitto, refused: number): Promise<Map<string, string>> {
    await until('all of them', () => {
      const { deniedTopics, queued, unacknowledged, state } = bridge.link.status()
      return state === 'connected' && deniedTopics === refused && queued + unacknowledged === 0
    })
    return await retainedOn(broker.port)
  }

  describe.concurrent.each(LIMITED)('under MQTT %s with %s', (protocol, config) => {
    test.each([
      ['all messages', [4_097, 4_500, 5_000, 5_000], 0, 4],
      ['two of equal size', [5_000, 500, 5_000, 3_900], 2, 2],
    ])('too large are %s: the others arrive after one loss at most', async (_what, sizes, fit, refused) => {
      await using broker = await Mosquitto.start({ config })
      await using bridge = startLink({ url: broker.url, protocol })
      for (const [i, size] of sizes.entries()) bridge.link.hold(`b/app/${i}`, 'x'.repeat(size))
      const held = await through(bridge, broker, refused)
      expect([...held.keys()].filter((topic) => topic.startsWith('b/app/'))).toHaveLength(fit)
      expect(held.get('b/state')).toBe('online')
      expect(bridge.link.status().reconnects).toBeLessThanOrEqual(1)
      expect(bridge.log.loud.filter((line) => line.startsWith('not published'))).toHaveLength(refused)
      // The link applies the known limit to later messages, and does not send the event again.
      bridge.link.send('b/event', 'x'.repeat(9_000), { ifRefused: (why) => ({ payload: why }) })
      bridge.link.hold('b/app/new', 'x'.repeat(3_950))
      expect((await through(bridge, broker, refused)).get('b/app/new')).toHaveLength(3_950)
      expect(bridge.link.status().reconnects).toBeLessThanOrEqual(1)
    })
  })
})

test
  .skipIf(withoutMosquitto)
  .concurrent(
    'the log recommends no other port after a broker has ended a connection because of a message',
    async () => {
      await using broker = await Mosquitto.start({ config: [`max_packet_size ${LIMIT}`] })
      await using bridge = startLink({ url: broker.url, protocol: '3.1.1' })
      for (let i = 0; i < 5; i += 1) bridge.link.hold(`b/app/${i}`, 'x'.repeat(100_000))
      await until('the loss', () => bridge.link.status().reconnects > 0)
      const lost = bridge.log.lines.filter(({ message }) => message.startsWith('connection to the MQTT broker lost'))
      expect(lost.map(({ remedy }) => remedy)).toEqual([undefined])
    },
  )

test.skipIf(withoutMosquitto).concurrent.each(['5', '3.1.1'] as const)(
  'a broker that accepts only small packets is connected, however many filters are read back (MQTT %s)',
  async (protocol) => {
    await using broker = await Mosquitto.start({ config: ['max_packet_size 300'] })
    const retainedFilters = ['b/state', ...Array.from({ length: 30 }, (_, i) => `b/+/app/+/number-${i}`)]
    await using bridge = startLink({ url: broker.url, protocol, retainedFilters, subscriptions: [] })
    bridge.link.hold('b/home/app/x/number-7', 'held')
    await settled(bridge)
    expect((await retainedOn(broker.port)).get('b/home/app/x/number-7')).toBe('held')
    // The broker would close the connection when it reads a packet that is too large.
    bridge.link.hold('b/home/app/x/number-7', 'last')
    await settled(bridge)
    expect(bridge.link.status()).toMatchObject({ state: 'connected', reconnects: 0 })
  },
)
