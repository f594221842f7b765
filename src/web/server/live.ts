import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../../base/clock.ts'
import type { AccessControl } from './access.ts'
import type { Feed } from './api/feed.ts'
import { LIVE_PATH, LOGIN_DUE } from './api/protocol.ts'
import { pathOf, type Reply, refuse } from './reply.ts'

const MAX_CLIENTS = 16
/** Maximum number of unsent bytes for a slow client, in addition to the snapshot. */
const MAX_WAITING_BYTES = 512 * 1024
const CHECK_MS = 1_000
const PING_MS = 15_000
/** Maximum time without a pong from a client. */
const GONE_MS = 60_000

interface Client {
  readonly socket: WebSocket
  /** Whether the client receives the values of settings. */
  readonly settings: boolean
  /** Maximum number of unsent bytes. */
  maxBytes: number
  /** Whether frames are skipped until the next snapshot. */
  behind: boolean
}

export class LiveChannel {
  readonly #feed: Feed
  readonly #clock: Clock
  // Compression would permanently use 300 KiB per client, for one snapshot and many small frames.
  readonly #server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 1024 })
  readonly #clients = new Set<Client>()

  constructor(feed: Feed, clock: Clock) {
    this.#feed = feed
    this.#clock = clock
  }

  get behind(): number {
    return [...this.#clients].filter(({ behind }) => behind).length
  }

  get waitingBytes(): number {
    return this.#clients.values().reduce((sum, { socket }) => sum + socket.bufferedAmount, 0)
  }

  /** Returns a refusal, or takes over the socket. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, allowed: AccessControl): Reply | undefined {
    if (pathOf(request) !== `/${LIVE_PATH}`) return refuse(404, 'unknown_path', 'This path has no WebSocket.')
    const sender = allowed.senderOf(request)
    const refused = allowed.refusal(request, sender, 'local', true)
    if (refused !== undefined) return refused
    if (this.#clients.size >= MAX_CLIENTS) return refuse(503, 'busy', 'Too many clients are connected.')
    const { access } = allowed.callerOf(request, sender)
    const mayStay = () => allowed.callerOf(request, sender).access === access
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#add(opened, access !== 'local', mayStay))
    return undefined
  }

  close(): void {
    for (const { socket } of this.#clients) socket.terminate()
  }

  #add(socket: WebSocket, settings: boolean, mayStay: () => boolean): void {
    const clock = this.#clock
    const client: Client = { socket, settings, maxBytes: 0, behind: true }
    let pongAt = clock.elapsed()
    let pingedAt = pongAt
    const check = () => {
      const now = clock.elapsed()
      if (!mayStay()) return socket.close(LOGIN_DUE, 'login')
      if (now - pongAt > GONE_MS) return socket.terminate()
      if (now - pingedAt > PING_MS) {
        pingedAt = now
        socket.ping()
      }
      if (client.behind && socket.bufferedAmount === 0) this.#catchUp(client)
      cancelCheck = clock.after(CHECK_MS, check)
    }
    let cancelCheck = clock.after(CHECK_MS, check)
    this.#clients.add(client)
    // The client starts as `behind`, so it receives no frames before its snapshot.
    const end = this.#feed.subscribe((frame) => this.#send(client, frame), client)
    socket.on('pong', () => {
      pongAt = clock.elapsed()
    })
    // Without this listener, a frame over the limit would cause an uncaught exception.
    socket.on('error', () => socket.terminate())
    socket.once('close', () => {
      cancelCheck()
      end()
      this.#clients.delete(client)
    })
    this.#catchUp(client)
  }

  /** Skips all frames of a client that is behind, because only a snapshot can restore the client's state. */
  #send(client: Client, frame: string): void {
    const { socket } = client
    if (client.behind) return
    if (socket.bufferedAmount > client.maxBytes) client.behind = true
    else socket.send(frame)
  }

  #catchUp(client: Client): void {
    const snapshot = this.#feed.snapshot(client)
    client.behind = false
    client.maxBytes = snapshot.length + MAX_WAITING_BYTES
    client.socket.send(snapshot)
  }
}
