/** Tests that whatever a hub sends, the daemon keeps running and publishes no app or value that does not exist. */
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../src/base/clock.ts'
import { HubError } from '../../src/hub/errors.ts'
import { openRealtime } from '../../src/hub/realtime.ts'

const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)
beforeEach(() => {
  uncaught.length = 0
  process.on('uncaughtException', note).on('unhandledRejection', note)
})
afterEach(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note)
  expect(uncaught).toEqual([])
})

describe('a server that speaks the realtime protocol', () => {
  const OPENING = '0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}'
  const ANSWERS: readonly (readonly [question: RegExp, answer: string])[] = [
    [/^40\/api,/, '40/api,{"sid":"n"}'],
    [/^40/, '40{"sid":"r"}'],
    [/^42(\d+)\["handshakeClient"/, '43$1[null,{"namespace":"/api"}]'],
    [/^42\/api,(\d+)\["subscribe"/, '43/api,$1[null]'],
  ]

  const POSITIONS = [0, 1, 2, 3, 4, 5]

  /** Runs a whole session in which the server's packet number `at` is replaced. */
  async function session(at: number, packet: string | Buffer): Promise<void> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    await once(server, 'listening')
    server.on('connection', (socket: WebSocket) => {
      let sent = 0
      const send = (sound: string) => {
        socket.send(sent === at ? packet : sound)
        sent += 1
      }
      send(OPENING)
      socket.on('error', () => {})
      socket.on('message', (data) => {
        const question = data.toString()
        const found = ANSWERS.find(([wanted]) => wanted.test(question))
        const id = found?.[0].exec(question)?.[1] ?? ''
        if (found !== undefined) send(found[1].replace('$1', id))
        if (question.includes('subscribe')) {
          for (let i = 0; i < 3; i++) send('42/api,["homey:manager:apps","app.update",{"id":"a"}]')
          setImmediate(() => socket.close())
        }
      })
    })
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const options = { apiKey: 'key', hubId: null, timeoutMs: 30, settleMs: 0, clock: systemClock }
    const ending = new AbortController()
    try {
      const url = `http://127.0.0.1:${port}`
      const opened = await openRealtime({
        ...options,
        prove: async () => {},
        url,
        apps: { receive: () => {} },
        signal: ending.signal,
      })
      await opened.ended
    } catch (error) {
      expect(error).toBeInstanceOf(HubError)
    } finally {
      ending.abort()
      for (const client of server.clients) client.terminate()
      server.close()
    }
  }

  /** Packets of the server, one group per line, separated by `¦`. */
  const PACKETS = [
    '0¦0null¦0{}¦0not json¦0{"sid":"s","upgrades":5}¦0{"sid":"s","upgrades":[],"pingInterval":-1,"pingTimeout":-9}',
    '40¦40null',
    '44¦44null¦44"no"¦44{}¦44{"message":{"toString":1}}¦44/api,¦44/api,{"message":[{"toString":1}]}',
    '43¦430¦430[]¦430["no"]¦430[{"statusCode":{"toString":1}}]¦430[null,{"namespace":{}}]',
    '42¦42[]¦42["connect_error"]¦42/api,["homey:manager:apps"]',
    '42/api,7["homey:manager:apps","app.update",{"id":"a"}]¦42/api,["homey:manager:apps",{"toString":1},[]]',
    '451-["homey:manager:apps",{"_placeholder":true,"num":7}]¦41¦1¦6¦9¦¦b!¦4¦49¦4999999',
  ].flatMap((group) => group.split('¦'))

  test.each(PACKETS)('may send %s at any point', async (packet) => {
    await Promise.all(POSITIONS.map((at) => session(at, packet)))
  })
})
