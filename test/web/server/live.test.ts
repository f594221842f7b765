import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import { createTopics } from '../../../src/contract/topics.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { until } from '../../support/until.ts'
import { fateOf, it, openDoor, owner, rawAnswer } from './door.ts'

const topics = createTopics('b')
const topicOf = (n: number) => topics.of('app', { hub: 'home', app: `com.example.app-${n}` })

interface Frame {
  readonly type: string
  readonly state?: readonly (readonly [string, string | null])[]
}

function framesOf(socket: WebSocket): Frame[] {
  const frames: Frame[] = []
  socket.on('message', (data) => frames.push(JSON.parse(String(data))))
  return frames
}

describe('the live channel', () => {
  it('buffers little for a client that does not read, and sends a new snapshot when the client reads again', async () => {
    const clock = new FakeClock()
    const { hold, webSocket } = await openDoor({ clock })
    const socket = webSocket()
    const frames = framesOf(socket)
    await until('the snapshot', () => frames.length > 0)
    let bytes = 0
    socket.on('message', (data) => {
      bytes += frames.at(-1)?.type === 'snapshot' ? 0 : String(data).length
    })
    socket.pause()
    const large = (n: number) => JSON.stringify({ n, filler: 'x'.repeat(100_000) })
    for (let n = 1; n <= 20; n += 1) {
      for (let i = 0; i < 20; i += 1) hold(topicOf(i), large(n))
      await clock.advance(100)
    }
    socket.resume()
    await until('a new snapshot', async () => {
      await clock.advance(200)
      return frames.findLast(({ type }) => type === 'snapshot') !== frames[0]
    })
    const snapshot = frames.findLast(({ type }) => type === 'snapshot')
    expect(snapshot?.state?.every(([, payload]) => payload === large(20))).toBe(true)
    // The client gets the messages that were in flight when it fell behind, and one batch, but not all 40 MB.
    expect(bytes).toBeLessThan(8_000_000)
  })

  it('accepts sixteen clients at once, and another when one has disconnected', async ({ door: { webSocket } }) => {
    const sockets = Array.from({ length: 16 }, () => webSocket())
    expect(await Promise.all(sockets.map(fateOf))).toEqual(Array(16).fill('open'))
    expect(await fateOf(webSocket())).toBe(503)
    const [first] = sockets
    first?.close()
    if (first) await once(first, 'close')
    await vi.waitFor(async () => expect(await fateOf(webSocket())).toBe('open'))
  })

  it('stays open, and delays no other request, however many clients connect', async ({
    door: { webSocket, ask, port },
  }) => {
    const sockets = Array.from({ length: 16 }, () => webSocket())
    await Promise.all(sockets.map(fateOf))
    const crowd = Array.from({ length: 40 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    onTestFinished(() => {
      for (const one of crowd) one.destroy()
    })
    await Promise.all(crowd.map((one) => once(one, 'connect')))
    expect((await ask('/api/session')).status).toBe(200)
    const pongs = sockets.map((socket) => once(socket, 'pong'))
    for (const socket of sockets) socket.ping()
    await Promise.all(pongs)
  })

  it('closes for a client that has not answered a ping for a minute, and for no other', async () => {
    const clock = new FakeClock()
    const { webSocket } = await openDoor({ clock })
    const [silent, alive] = [webSocket(), webSocket()]
    await Promise.all([fateOf(silent), fateOf(alive)])
    const ended = once(silent, 'close')
    silent.pause()
    for (let rounds = 0; rounds < 5; rounds += 1) {
      const asked = once(alive, 'ping')
      await clock.advance(16_000)
      await asked
      // Wait for this pong: by then, a pong of the silent client would have arrived as well.
      const answered = once(alive, 'pong')
      alive.ping()
      await answered
    }
    silent.resume()
    await ended
    expect(alive.readyState).toBe(alive.OPEN)
  })

  it('closes for a client that sends more than a few bytes', async ({ door: { webSocket } }) => {
    const socket = webSocket()
    await fateOf(socket)
    const ended = once(socket, 'close')
    socket.send('x'.repeat(5000))
    await ended
  })

  it('is not opened on a connection whose earlier request has no answer yet', async () => {
    const { port } = await openDoor({ commandMs: 60_000 })
    const command = `POST /api/commands/home/refresh HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${owner.authorization}\r\n\r\n`
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
    const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
    expect(await rawAnswer(port, `${command}GET /api/live HTTP/1.1\r\nHost: localhost\r\n${upgrade}${key}\r\n`)).toBe(
      '',
    )
  }, 9_000)

  it('is the only path with a WebSocket', async ({ door: { port } }) => {
    expect(await fateOf(new WebSocket(`ws://127.0.0.1:${port}/api/state`))).toBe(404)
  })
})
