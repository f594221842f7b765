import { describe, expect } from 'vitest'
import { Mosquitto } from '../support/brokers.ts'
import { retainedOn } from '../support/observer.ts'
import { World } from '../support/world.ts'
import { settled, startLink, test, withoutMosquitto } from './support.ts'

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
    // The log recommends no other port after the broker has ended a connection because of a message.
    const lost = bridge.lines.filter((line) => line.includes('connection to the MQTT broker lost'))
    expect(lost.filter((line) => line.includes('"remedy"'))).toEqual([])
  })
})

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
