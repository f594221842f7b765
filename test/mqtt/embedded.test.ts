import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { isLoopback } from '../../src/base/hosts.ts'
import {
  EMBEDDED_BROKER_NOTICE,
  EmbeddedBrokerError,
  HOME_ASSISTANT_HERE,
  limitPackets,
  REFUSED_MQTT_5,
  startEmbeddedBroker,
} from '../../src/mqtt/embedded.ts'
import { listening } from '../support/at-end.ts'
import { Observer } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { portOf, RecordingLog, settled, silent, startAedes, startLink } from './support.ts'

const local = { host: '127.0.0.1', port: 0, commandFilters: ['b/+/cmd/#'] } as const

/** Connects a client whose session the broker keeps. Adds the payloads that it receives to `got`. */
async function joinKept(url: string, got: string[]) {
  const client = await connectAsync(url, { clientId: 'kept', clean: false, reconnectPeriod: 0 })
  client.on('message', (_, payload) => got.push(payload.toString()))
  return client
}

describe('the embedded broker', () => {
  test('logs its purpose and its limits in one line', async () => {
    const log = new RecordingLog()
    await using broker = await startAedes(log.logger)
    expect(log.lines.map(({ message }) => message)).toEqual([EMBEDDED_BROKER_NOTICE])
    expect(EMBEDDED_BROKER_NOTICE).toMatch(/3\.1\.1.*in memory.*this machine/)
    expect(broker.url).toMatch(/^mqtt:\/\/127\.0\.0\.1:\d+$/)
  })

  test('logs that other machines can reach it, and the address on which it listens', async () => {
    const log = new RecordingLog()
    await using _ = await startEmbeddedBroker(
      { ...local, host: '0.0.0.0', username: 'me', password: 'pass' },
      log.logger,
    )
    expect(log.lines).toMatchObject([{ host: '0.0.0.0', message: expect.stringMatching(/in memory.*other machines/) }])
  })

  test('logs once that Home Assistant needs another broker, even if it could not connect', async () => {
    const log = new RecordingLog()
    await using broker = await startEmbeddedBroker({ ...local, birthTopic: 'homeassistant/status' }, log.logger)
    const port = portOf(broker.url)
    const isRefused = () =>
      Observer.on(port, { protocol: '5' }).then(
        () => false,
        () => true,
      )
    expect([await isRefused(), await isRefused()]).toEqual([true, true])
    expect(log.loud).toEqual([REFUSED_MQTT_5])
    await using client = await Observer.on(port, { protocol: '3.1.1' })
    await client.publish('homeassistant/other', 'online')
    expect(log.loud).toHaveLength(1)
    await client.publish('homeassistant/status', 'online', { qos: 1 })
    await client.publish('homeassistant/status', 'offline', { qos: 1 })
    expect(log.loud).toEqual([REFUSED_MQTT_5, HOME_ASSISTANT_HERE])
    for (const line of log.loud) expect(line).toContain('Mosquitto')
  })

  test.each(['0.0.0.0', '::', '', '192.168.1.5', 'broker.local'])(
    'does not listen on "%s" without a password',
    async (host) => {
      const start = startEmbeddedBroker({ ...local, host }, silent)
      await expect(start).rejects.toMatchObject({ code: 'unsafe_host', message: expect.stringContaining('password') })
      await expect(start).rejects.toBeInstanceOf(EmbeddedBrokerError)
    },
  )

  test('reports a port that is in use, and leaves nothing open', async () => {
    const taken = createServer()
    const port = await listening(taken)
    const start = () => startEmbeddedBroker({ ...local, port }, silent)
    await expect(start()).rejects.toMatchObject({ code: 'port_in_use', message: expect.stringContaining(String(port)) })
    taken.close()
    await once(taken, 'close')
    await using broker = await start()
    expect(portOf(broker.url)).toBe(port)
  })

  test('accepts only clients with the password', async () => {
    await using broker = await startEmbeddedBroker({ ...local, username: 'me', password: 'pass' }, silent)
    const port = portOf(broker.url)
    await using observer = await Observer.on(port, { username: 'me', password: 'pass' })
    expect(observer.seen).toEqual([])
    await expect(Observer.on(port)).rejects.toThrow()
    await expect(Observer.on(port, { username: 'me', password: 'wrong' })).rejects.toThrow()
    await expect(Observer.on(port, { username: 'you', password: 'pass' })).rejects.toThrow()
    await using bridge = startLink({ url: broker.url, username: 'me', password: 'nope' })
    await until('the refusal', () => bridge.link.status().reason)
    expect(bridge.link.status().reason).toBe('unauthorized')
  })

  test.each([3, 65_535])(
    'accepts a message of max_payload, and no larger one, on a topic of %i bytes',
    async (length) => {
      await using broker = await startEmbeddedBroker({ ...local, maxPayload: 65_536 }, silent)
      const topic = 't'.repeat(length)
      await using good = await Observer.on(portOf(broker.url))
      for (const qos of [0, 1, 2] as const) {
        await using sender = await Observer.on(portOf(broker.url), { filter: 'none' })
        await sender.publish(topic, 'x'.repeat(65_536), { qos })
        await until('the message', () => good.texts(topic).length === qos + 1)
        const tooLarge = sender.publish(topic, 'x'.repeat(65_537), { qos })
        // With QoS 0, the publish succeeds before the broker closes the connection.
        if (qos > 0) await expect(tooLarge).rejects.toThrow()
        await until('its end', () => !sender.ready)
      }
      expect(good.texts(topic).map((text) => text.length)).toEqual([65_536, 65_536, 65_536])
    },
  )

  test('disconnects a subscriber that does not read, and delays no other client', async () => {
    const log = new RecordingLog()
    await using broker = await startEmbeddedBroker({ ...local }, log.logger)
    const port = portOf(broker.url)
    await using good = await Observer.on(port, { filter: 'load' })
    const stuck = connect(port, '127.0.0.1')
    await once(stuck, 'connect')
    stuck.on('error', () => undefined)
    // Send CONNECT as `stuck`, and SUBSCRIBE to `load` at QoS 0. After the two answers, stop reading.
    stuck.write(Buffer.from('1011 00044d515454 04 02 0000 0005 737475636b'.replaceAll(' ', ''), 'hex'))
    stuck.write(Buffer.from('8209 0001 0004 6c6f6164 00'.replaceAll(' ', ''), 'hex'))
    await until('both answers', () => stuck.bytesRead >= 9)
    stuck.pause()
    await using publisher = await Observer.on(port, { filter: 'none' })
    for (let i = 0; i < 100; i += 1) await publisher.publish('load', 'x'.repeat(500_000))
    await until('everything', () => good.seen.length === 100, 30_000)
    await until('its end', () => log.lines.some(({ message }) => message.includes('does not read')))
    stuck.resume()
    await once(stuck, 'close')
  })

  test('limits the number of connections', async () => {
    await using broker = await startEmbeddedBroker({ ...local, maxConnections: 2 }, silent)
    const port = portOf(broker.url)
    await using first = await Observer.on(port)
    {
      await using second = await Observer.on(port)
      await expect(Observer.on(port)).rejects.toThrow()
      await second.publish('a', '1')
    }
    await until('the first', () => first.last('a') === '1')
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
  })

  test.each([0, 1, 2] as const)('marks a command of QoS %i as retained for its subscribers', async (qos) => {
    await using broker = await startEmbeddedBroker({ ...local }, silent)
    const port = portOf(broker.url)
    await using taker = await Observer.on(port, { filter: 'b/#' })
    await using sender = await Observer.on(port, { filter: 'none' })
    const sent = [
      ['b/x/cmd/y', 'now', true],
      ['b/x', 'now', true],
      ['b/x/cmd/y', '', true],
      ['b/x/cmd/y', '', false],
    ] as const
    for (const [i, [topic, text, retain]] of sent.entries()) {
      await sender.publish(topic, text, { retain, qos })
      // Wait for each message, because at QoS 0 aedes may drop a message that a later one overtakes.
      await until('the message', () => taker.seen.length > i)
    }
    expect(taker.seen.map(({ topic, text, retain }) => [topic, text, retain])).toEqual([
      ['b/x/cmd/y', 'now', true],
      ['b/x', 'now', false],
      ['b/x/cmd/y', '', true],
      ['b/x/cmd/y', '', false],
    ])
  })

  test('sends a retained command once to a session that it keeps', async () => {
    await using broker = await startEmbeddedBroker({ ...local }, silent)
    await using sender = await Observer.on(portOf(broker.url), { filter: 'none' })
    const got: string[] = []
    const join = () => joinKept(broker.url, got)
    const first = await join()
    await first.subscribeAsync('b/x/cmd/y', { qos: 1 })
    await sender.publish('b/x/cmd/y', 'retained', { retain: true })
    await sender.publish('b/x/cmd/y', 'next')
    await until('both', () => got.length === 2)
    await first.endAsync()
    const second = await join()
    await sender.publish('b/x/cmd/y', 'last')
    await until('the last', () => got.includes('last'))
    await second.endAsync(true)
    expect(got).toEqual(['retained', 'next', 'last'])
  })

  test('releases each message of QoS 2, also if a client acknowledges two in one packet of the network', async () => {
    await using broker = await startEmbeddedBroker({ ...local }, silent)
    const port = portOf(broker.url)
    await using sender = await Observer.on(port, { filter: 'none' })
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.setEncoding('hex').on('data', (hex: string) => {
      received += hex
    })
    const send = (hex: string) => socket.write(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
    // CONNECT without a clean session, and SUBSCRIBE with QoS 2.
    send('1010 00044d515454 04 00 0000 0004 6b657074')
    send('8206 0001 0001 61 02')
    await until('both answers', () => received.length === 18)
    received = ''
    for (const text of ['x', 'y']) await sender.publish('a', text, { qos: 2 })
    await until('both messages', () => received.length === 32)
    const ids = [received.slice(10, 14), received.slice(26, 30)]
    received = ''
    send(ids.map((id) => `5002${id}`).join(''))
    await until('both releases', () => received.length === 16)
    expect(received).toBe(ids.map((id) => `6202${id}`).join(''))
    socket.destroy()
  })

  test.each([1, 2] as const)(
    'sends a retained message of QoS 2 to a session that it keeps, with QoS %i',
    async (qos) => {
      await using broker = await startEmbeddedBroker({ ...local }, silent)
      await using sender = await Observer.on(portOf(broker.url), { filter: 'none' })
      await sender.publish('a/b', 'retained', { retain: true, qos: 2 })
      const got: string[] = []
      const client = await joinKept(broker.url, got)
      await client.subscribeAsync('a/+', { qos })
      await until('the retained message', () => got.length === 1)
      await sender.publish('a/b', 'next', { qos: 2 })
      await until('the next message', () => got.length === 2)
      await client.endAsync()
      expect(got).toEqual(['retained', 'next'])
    },
  )

  test('keeps at most 1,000 messages for a client that is away, and all that it gets while it is connected', async () => {
    const log = new RecordingLog()
    await using broker = await startEmbeddedBroker({ ...local }, log.logger)
    await using sender = await Observer.on(portOf(broker.url), { filter: 'none' })
    const got: string[] = []
    const join = () => joinKept(broker.url, got)
    const send = async (name: string, count: number) => {
      for (let i = 0; i < count; i += 1) await sender.publish('a', `${name} ${i}`, { qos: 1 })
    }
    const first = await join()
    await first.subscribeAsync('a', { qos: 1 })
    await first.endAsync()
    for (const name of ['one', 'two']) {
      await send(name, 1_100)
      const client = await join()
      await until('the kept messages', () => got.includes(`${name} 999`))
      await send(`after ${name}`, 1_100)
      await until('all later messages', () => got.includes(`after ${name} 1099`))
      await client.endAsync()
      expect(got.splice(0).filter((text) => text.startsWith(name))).toHaveLength(1_000)
    }
    expect(log.loud.filter((line) => line.includes('away'))).toHaveLength(2)
  })

  test('keeps the connection of a client that returns to a full queue while messages arrive', async () => {
    await using broker = await startEmbeddedBroker({ ...local }, silent)
    await using sender = await Observer.on(portOf(broker.url), { filter: 'none' })
    const got: string[] = []
    const first = await joinKept(broker.url, got)
    await first.subscribeAsync('a', { qos: 1 })
    await first.endAsync()
    let sent = 0
    let enough = false
    const send = async () => {
      while (!enough) await sender.publish('a', `new ${sent}`, { qos: sent++ % 2 === 0 ? 1 : 2 })
    }
    const sending = Promise.all(Array.from({ length: 50 }, send))
    try {
      for (let round = 1; round <= 2; round += 1) {
        await until('a full queue', () => sent > round * 1_500)
        const client = await joinKept(broker.url, got)
        await sender.publish('a', `last ${round}`, { qos: 1 })
        await until('the last message', () => got.includes(`last ${round}`))
        await client.endAsync(true)
      }
    } finally {
      enough = true
      await sending
    }
  })

  test('closes with clients connected, also if closed twice', async () => {
    const broker = await startAedes()
    await using one = startLink({ url: broker.url })
    await using other = startLink({ url: broker.url, clientId: 'other' })
    await Promise.all([settled(one), settled(other)])
    await Promise.all([broker[Symbol.asyncDispose](), broker[Symbol.asyncDispose]()])
    await until('both to notice', () => one.link.status().reason && other.link.status().reason)
  })
})

describe('its protections', () => {
  test('recognise the loopback addresses', () => {
    for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', '::1']) expect(isLoopback(host)).toBe(true)
    for (const host of ['', '0.0.0.0', '::', '127.example.com', '10.0.0.1']) expect(isLoopback(host)).toBe(false)
  })

  test('find the first packet over the limit, however the bytes are split', () => {
    const packet = (size: number) => {
      const header = size < 128 ? [0x30, size] : [0x30, (size & 0x7f) | 0x80, size >> 7]
      return Buffer.concat([Buffer.from(header), Buffer.alloc(size, 0xff)])
    }
    fc.assert(
      fc.property(
        fc.array(fc.nat(400), { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }),
        (sizes, cuts) => {
          const bytes = Buffer.concat(sizes.map(packet))
          const stream = new Duplex({ read: () => undefined, write: () => undefined })
          stream.on('error', () => undefined)
          limitPackets(stream, 300)
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const size = cuts[i % cuts.length] ?? 1
            stream.push(bytes.subarray(at, at + size))
            stream.read()
            at += size
          }
          expect(stream.destroyed).toBe(sizes.some((size) => size > 300))
        },
      ),
    )
  })
})
