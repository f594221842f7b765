import { describe, expect } from 'vitest'
import { Observer, retainedOn } from '../support/observer.ts'
import { until } from '../support/until.ts'
import { settled, startLink, test, withoutMosquitto } from './support.ts'

describe.skipIf(withoutMosquitto)('commands and events through Mosquitto', () => {
  test('a command arrives with its response topic, correlation data and expiry as they were sent', async ({
    broker,
    bridge,
  }) => {
    await settled(bridge)
    await using observer = await Observer.on(broker.port, { protocol: '5', filter: 'answer' })
    const correlationData = Buffer.from([0, 255, 1, 254])
    await observer.publish('b/x/cmd/restart', '{"a":1}', {
      properties: { responseTopic: 'answer', correlationData, messageExpiryInterval: 30 },
    })
    const message = await until('the command', () => bridge.messages[0])
    expect(message).toMatchObject({
      topic: 'b/x/cmd/restart',
      payload: Buffer.from('{"a":1}'),
      retain: false,
      qos: 1,
      responseTopic: 'answer',
      correlationData,
    })
    expect(message.expiresInMs).toBeGreaterThan(20_000)
    expect(bridge.link.isCurrent(message)).toBe(true)
    bridge.link.send('answer', 'done', {
      correlationData,
      contentType: 'application/json',
      userProperties: { by: 'me' },
    })
    const answer = await until('the answer', () => observer.seen[0])
    expect(answer).toMatchObject({ text: 'done', retain: false })
    expect(answer.packet.properties).toMatchObject({
      correlationData,
      contentType: 'application/json',
      userProperties: { by: 'me' },
    })
  })

  test.for(['5', '3.1.1'] as const)(
    'a stored command is marked as retained under MQTT %s, and clearing it is no command',
    async (protocol, { broker }) => {
      await using observer = await Observer.on(broker.port, { filter: 'none' })
      await observer.publish('b/x/cmd/restart', '', { retain: true })
      await observer.publish('b/y/cmd/restart', 'now', { retain: true })
      await using bridge = startLink({ url: broker.url, protocol })
      await until('the command', () => bridge.messages.length > 0)
      expect(bridge.messages).toMatchObject([{ topic: 'b/y/cmd/restart', retain: true }])
      bridge.link.hold('b/y/cmd/restart', null)
      await settled(bridge)
      await observer.publish('b/x/cmd/last', '')
      await until('a later command', () => bridge.messages.some(({ topic }) => topic === 'b/x/cmd/last'))
      expect(bridge.messages.map(({ topic }) => topic)).toEqual(['b/y/cmd/restart', 'b/x/cmd/last'])
      expect([...(await retainedOn(broker.port)).keys()]).toEqual(['b/state'])
      // The link must deliver the next message on the same topic as a command.
      await observer.publish('b/y/cmd/restart', '')
      await until('the live command', () => bridge.messages.length === 3)
      expect(bridge.messages[2]).toMatchObject({ topic: 'b/y/cmd/restart', retain: false })
    },
  )

  test('an urgent message arrives at once, while commands wait because the broker takes no answers', async ({
    proxy,
    observer,
  }) => {
    const subscriptions = ['b/+/cmd/+', 'b/urgent']
    const url = `mqtt://127.0.0.1:${proxy.port}`
    await using bridge = startLink({ url, subscriptions, urgentTopic: 'b/urgent' })
    await settled(bridge)
    proxy.swallow('up')
    for (let i = 0; i < 2_000; i += 1) bridge.link.send('b/app/result/x', 'x', { isAnswer: true })
    await observer.publish('b/app/cmd/x', '')
    await observer.publish('b/urgent', 'now')
    await until('the message', () => bridge.messages.length > 0)
    expect(bridge.messages.map(({ topic }) => topic)).toEqual(['b/urgent'])
  })

  test('commands and events that were dropped before the link are counted and logged like its own', ({ bridge }) => {
    for (const kind of ['commands', 'events', 'commands'] as const) bridge.link.dropped(kind)
    expect(bridge.link.status().dropped).toBe(3)
    expect(bridge.log.loud.map((line) => line.split(':')[0])).toEqual(['dropping commands', 'dropping events'])
  })

  test('an exception in a handler affects neither the connection nor the next commands', async ({ broker }) => {
    await using observer = await Observer.on(broker.port, { filter: 'none' })
    await using bridge = startLink({ url: broker.url })
    bridge.messages.push = () => {
      throw new Error('boom')
    }
    await settled(bridge)
    await observer.publish('b/x/cmd/one', '')
    await observer.publish('b/x/cmd/two', '')
    await until('both to have failed', () => bridge.log.loud.length === 2)
    expect(bridge.link.status()).toMatchObject({ state: 'connected', reconnects: 0 })
  })

  test('no event is lost over connections that are reset in the middle of a publish', async ({ broker, proxy }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/#' })
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await settled(bridge)
    let sent = 0
    for (let round = 1; round <= 4; round += 1) {
      proxy.cutAfter(500 * round + 7)
      for (let i = 0; i < 100; i += 1) {
        bridge.link.send('b/event', String(sent++))
        bridge.link.hold(`b/app/${i}`, `round ${round}`)
      }
      await until('the reset', () => bridge.link.status().reconnects === round)
      await settled(bridge, round + 1)
    }
    await until('the last event', () => observer.last('b/event') === String(sent - 1))
    expect(new Set(observer.texts('b/event')).size).toBe(sent)
    // The link repeats events whose acknowledgements were lost, so compare only the first copy of each event.
    const firsts = [...new Set(observer.texts('b/event'))]
    expect(firsts).toEqual(firsts.toSorted((a, b) => Number(a) - Number(b)))
    const held = await retainedOn(broker.port)
    for (let i = 0; i < 100; i += 1) expect(held.get(`b/app/${i}`)).toBe('round 4')
    expect(bridge.link.status()).toMatchObject({ deniedTopics: 0, dropped: 0 })
  })

  test('while the broker is offline the newest thousand events wait, and one log line reports that older ones are dropped', async ({
    broker,
    proxy,
  }) => {
    await using observer = await Observer.on(broker.port, { filter: 'b/event' })
    proxy.refuse(true)
    await using bridge = startLink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    await until('the failure', () => bridge.link.status().reason)
    for (let i = 0; i < 1500; i += 1) bridge.link.send('b/event', String(i))
    expect(bridge.link.status()).toMatchObject({ queued: 1000, dropped: 500 })
    expect(bridge.log.loud.filter((line) => line.includes('dropping'))).toHaveLength(1)
    proxy.refuse(false)
    await until('the last event', () => observer.last('b/event') === '1499')
    expect(observer.seen).toHaveLength(1000)
    expect(observer.seen[0]?.text).toBe('500')
  })
})
