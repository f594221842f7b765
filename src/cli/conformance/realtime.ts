import { Manager, type Socket } from 'socket.io-client'
import { WebSocket } from 'ws'
import { sleep, within } from '../../base/clock.ts'
import { isRecord } from '../../base/json.ts'
import { withoutSlashes } from '../../base/text.ts'
import { GuardedWebSocket } from '../../hub/websocket.ts'
import { first } from '../doctor/spoken.ts'
import type { Target } from './observation.ts'

const APPS_URI = 'homey:manager:apps'
/** How long to watch a new namespace. A hub may open a namespace and immediately close it. */
const SETTLE_MS = 600

export type Step = 'ok' | 'refused' | 'dropped' | 'silent' | 'not_tried'

interface Steps {
  connect: Step
  handshake: Step
  namespace: string | null
  tokenOffered: boolean
  open: Step
  subscribe: Step
}
export type SessionSeen = Readonly<Steps>

export type HubEvent = { readonly name: string; readonly payload: Record<string, unknown> }

/** A connection to the hub's realtime channel, which receives events while it is open. */
export type Session = Awaited<ReturnType<typeof openSession>>

/**
 * Opens a session. @param prove checks the hub's identity before the key is sent
 * @param withToken whether to send the token of the handshake to the namespace
 */
export async function openSession(
  { url, key, timeoutMs, clock }: Target,
  hubId: string | null,
  prove: () => Promise<boolean>,
  withToken: boolean,
) {
  const { origin, pathname } = new URL(url)
  const manager = new Manager(origin, {
    path: `${withoutSlashes(pathname)}/socket.io`,
    transports: [GuardedWebSocket],
    reconnection: false,
    autoConnect: false,
    timeout: timeoutMs,
  })
  const sockets: Socket[] = []
  const socketAt = (name: string, options = {}) => {
    const socket = manager.socket(name, options)
    sockets.push(socket)
    return socket
  }
  /** Runs a step. It ends when `start` calls `end`, when the connection is lost, or after the time limit. */
  const step = async (socket: Socket, start: (end: (how: Step, result?: unknown) => void) => void) => {
    const { promise, resolve } = Promise.withResolvers<[how: Step, result?: unknown]>()
    socket.once('disconnect', () => resolve(['dropped']))
    start((...end) => resolve(end))
    return (await within(clock, timeoutMs, promise)) ?? (['silent'] as const)
  }
  const connected = async (socket: Socket): Promise<Step> => {
    const [how] = await step(socket, (end) => {
      socket.once('connect', () => end('ok'))
      socket.once('connect_error', () => end('refused'))
      socket.connect()
    })
    return how
  }
  const request = (socket: Socket, event: string, argument: unknown) =>
    step(socket, (end) =>
      socket.emit(event, argument, (error: unknown, result: unknown) =>
        end((error ?? null) === null ? 'ok' : 'refused', result),
      ),
    )

  const events: HubEvent[] = []
  let onEvent = () => {}
  const seen: Steps = {
    ...{ connect: 'not_tried', handshake: 'not_tried', namespace: null },
    ...{ tokenOffered: false, open: 'not_tried', subscribe: 'not_tried' },
  }
  const go = async (): Promise<void> => {
    const root = socketAt('/')
    seen.connect = await connected(root)
    if (seen.connect !== 'ok' || !(await prove())) return
    const [handshake, welcome] = await request(root, 'handshakeClient', { token: key, homeyId: hubId })
    const { namespace, token } = isRecord(welcome) ? welcome : {}
    seen.handshake = handshake
    seen.namespace = typeof namespace === 'string' && namespace.startsWith('/') ? namespace : null
    seen.tokenOffered = typeof token === 'string'
    if (handshake !== 'ok' || seen.namespace === null) return
    const api = socketAt(seen.namespace, withToken && seen.tokenOffered ? { auth: { token } } : {})
    api.on(APPS_URI, (event: unknown, payload: unknown) => {
      if (typeof event === 'string' && isRecord(payload)) events.push({ name: event, payload })
      onEvent()
    })
    seen.open = await connected(api)
    if (seen.open !== 'ok') return
    await sleep(clock, SETTLE_MS)
    seen.open = api.connected ? 'ok' : 'dropped'
    if (api.connected) [seen.subscribe] = await request(api, 'subscribe', APPS_URI)
  }
  await go()
  return {
    seen,
    events,
    isOpen: () => seen.subscribe === 'ok' && sockets.every((socket) => socket.connected),
    /** Resolves to whether a matching event arrives within `ms`, or is already in `events` at index `from` or later. */
    async receives(from: number, wanted: (event: HubEvent) => boolean, ms: number): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      onEvent = () => {
        if (events.slice(from).some(wanted)) resolve(true)
      }
      onEvent()
      return (await within(clock, ms, promise)) ?? false
    },
    close(): void {
      for (const socket of sockets.toReversed()) {
        socket.removeAllListeners()
        socket.disconnect()
      }
      manager.removeAllListeners()
      manager._close()
    },
  }
}

/** Returns whether the hub accepts a version of Engine.IO, the protocol below Socket.IO. Does not send the key. */
export async function speaks(version: 3 | 4, url: string, timeoutMs: number): Promise<boolean> {
  const base = withoutSlashes(url.replace(/^http/, 'ws'))
  const socket = new WebSocket(`${base}/socket.io/?EIO=${version}&transport=websocket`, { handshakeTimeout: timeoutMs })
  return await first(socket, timeoutMs, (_, resolve) =>
    socket.on('message', (data) => {
      const start = Buffer.isBuffer(data) ? data.toString('utf8', 0, 3) : ''
      const opens = start.startsWith('0{')
      // Socket.IO 2 accepts any version, and opens the root namespace without being asked and without an id.
      if (version === 4 && opens) socket.send('40')
      else resolve(version === 3 ? opens : start === '40{')
    }),
  )
}
