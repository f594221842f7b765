import { once } from 'node:events'
import { connect } from 'node:net'
import * as v from 'valibot'
import { describe, expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { until } from '../support/until.ts'
import { ask, HUE, hubOf, KEY, subscribed, test } from './support.ts'

const LOG = v.object({ id: v.string(), ownerUri: v.string() })
const ENTRIES = v.object({ values: v.array(v.object({ v: v.number() })) })

/** Opens a WebSocket without a client library; returns the received messages, and a function to send. */
async function raw(url: string, protocol: 3 | 4) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket.io/?EIO=${protocol}&transport=websocket`)
  onTestFinished(() => socket.terminate())
  const received: string[] = []
  socket.on('message', (data) => received.push(String(data)))
  socket.on('error', () => {})
  await once(socket, 'open')
  const next = (start: string) => until(start, () => received.find((packet) => packet.startsWith(start)))
  return { socket, next, send: (packet: string) => socket.send(packet) }
}

describe('the protocol', () => {
  test('is the one that the official client of the hub still uses', async ({ hub }) => {
    const { next, send } = await raw(hub.url, 3)
    await next('0{')
    await next('40')
    send(`420["handshakeClient",{"token":"${KEY}","homeyId":"any"}]`)
    expect(await next('430')).toMatch(/^430\[null,\{"namespace":"\/api","token":"[^"]+"\}\]$/)
    // Connect without the token, because the client's protocol has no field for a token.
    send('40/api')
    await next('40/api')
    send('42/api,1["subscribe","homey:manager:apps"]')
    expect(await next('43/api,1')).toBe('43/api,1[null,null]')
    hub.uninstall(HUE)
    expect(await next('42/api')).toBe(`42/api,["homey:manager:apps","app.delete",{"id":"${HUE}"}]`)
    send('2')
    await next('3')
  })

  test.each(['newer', 'self-hosted'] as const)(
    'has the figures of each log where the official client reads them from a hub of the %s kind',
    async (flavour) => {
      const hub = await hubOf({ flavour })
      const logs = v.parse(v.array(LOG), (await ask(hub, 'GET /api/manager/insights/log')).json)
      // The client identifies a log only by its id, which begins with the owner.
      expect(new Set(logs.map(({ id }) => id)).size).toBe(2 * hub.apps.size)
      for (const { id, ownerUri } of logs.filter(({ ownerUri }) => ownerUri.endsWith(HUE))) {
        const owner = id.split(':', 3).join(':')
        expect(owner).toBe(ownerUri)
        const answer = await ask(hub, `GET /api/manager/insights/log/${owner}/${id}/entry?resolution=last24Hours`)
        const { values } = v.parse(ENTRIES, answer.json)
        expect(values).toHaveLength(288)
        const { usage } = hub.apps.get(HUE) ?? {}
        expect(values.at(-1)?.v).toBe(id.endsWith(':cpu') ? (usage?.cpu ?? Number.NaN) * 100 : usage?.mem)
      }
    },
  )

  test('has no transport but WebSocket', async ({ hub }) => {
    expect((await ask(hub, 'GET /socket.io/?EIO=4&transport=polling')).status).not.toBe(200)
  })

  test('keeps idle connections only for as long as configured', async () => {
    const hub = await hubOf({ keepAliveMs: 2000 })
    expect((await ask(hub, 'GET /api/manager/system/ping')).headers['keep-alive']).toBe('timeout=2')
  })
})

describe('nonsense', () => {
  test.each([
    '\0\0\0',
    'GET\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'PUT /api HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{',
  ])('on a bare connection does not stop the hub: %j', async (bytes) => {
    const hub = await hubOf()
    const socket = connect(hub.port, '127.0.0.1').on('error', () => {})
    socket.resume().end(bytes)
    await once(socket, 'close')
    expect((await ask(hub, 'GET /apps/app')).status).toBe(200)
  })

  test.each(['', '9', '42/api,["subscribe"]', '42["handshakeClient"', '40/elsewhere', '451-["x"]', '42["disconnect"]'])(
    'on a realtime connection does not affect the others: %j',
    async (packet) => {
      const hub = await hubOf()
      const session = await subscribed(hub)
      const { next, send, socket } = await raw(hub.url, 4)
      await next('0{')
      send(packet)
      send('40')
      socket.close()
      await once(socket, 'close')
      expect(session.api.connected).toBe(true)
      expect(hub.connections.subscribers).toBe(1)
    },
  )
})
