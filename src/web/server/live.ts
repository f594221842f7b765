import { type WebSocket, WebSocketServer } from 'ws'
import { LIVE_PATH, LOGIN_DUE } from './api/protocol.ts'
import type { AppContext } from './api/routes.ts'
import { pathOf, refuse } from './reply.ts'
import type { RequestHandler } from './server.ts'

const MAX_CLIENTS = 16
/** Maximum number of unsent bytes for a slow client, in addition to the snapshot. */
const MAX_WAITING_BYTES = 512 * 1024
const CHECK_MS = 1_000
/** Time without a pong after which the server pings at each check. */
const PING_MS = 15_000
/** Maximum time without a pong from a client. */
const GONE_MS = 60_000

/** Returns the parts of a request handler that open and close the WebSockets. */
export function liveChannel(context: AppContext): Pick<RequestHandler, 'upgrade' | 'close'> {
  const { access: allowed } = context
  // Compression would permanently use 300 KiB per client, for one snapshot and many small frames.
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 1024 })
  return {
    upgrade(request, socket, head) {
      if (pathOf(request) !== `/${LIVE_PATH}`) return refuse(404, 'unknown_path', 'This path has no WebSocket.')
      const sender = allowed.senderOf(request)
      const refused = allowed.refusal(request, sender, 'local', true)
      if (refused !== undefined) return refused
      if (server.clients.size >= MAX_CLIENTS) return refuse(503, 'busy', 'Too many clients are connected.')
      const { access } = allowed.callerOf(request, sender)
      // A reload can change which proxies are trusted, so determine the sender again.
      const mayStay = () => allowed.callerOf(request, allowed.senderOf(request)).access === access
      server.handleUpgrade(request, socket, head, (opened) => serve(context, opened, access !== 'local', mayStay))
      return undefined
    },
    close() {
      for (const socket of server.clients) socket.terminate()
    },
  }
}

/** @param settings whether the client receives the values of settings */
function serve({ feed, clock }: AppContext, socket: WebSocket, settings: boolean, mayStay: () => boolean): void {
  let pongAt = clock.elapsed()
  /** Maximum number of unsent bytes before the client counts as behind. */
  let maxBytes = 0
  /** Whether the client has missed frames. It receives no frames until a snapshot restores its state. */
  let isBehind = true
  const catchUp = () => {
    const snapshot = feed.snapshot(settings)
    isBehind = false
    maxBytes = snapshot.length + MAX_WAITING_BYTES
    socket.send(snapshot)
  }
  const check = () => {
    const now = clock.elapsed()
    if (!mayStay()) return socket.close(LOGIN_DUE, 'login')
    if (now - pongAt > GONE_MS) return socket.terminate()
    if (now - pongAt > PING_MS) socket.ping()
    if (isBehind && socket.bufferedAmount === 0) catchUp()
    cancelCheck = clock.after(CHECK_MS, check)
  }
  let cancelCheck = clock.after(CHECK_MS, check)
  // `isBehind` is initially `true`, so the client receives no frames before its snapshot.
  const end = feed.subscribe((frame) => {
    isBehind ||= socket.bufferedAmount > maxBytes
    if (!isBehind) socket.send(frame)
  }, settings)
  socket.on('pong', () => {
    pongAt = clock.elapsed()
  })
  // Without this listener, a frame over the limit would cause an uncaught exception.
  socket.on('error', () => socket.terminate())
  socket.once('close', () => {
    cancelCheck()
    end()
  })
  catchUp()
}
