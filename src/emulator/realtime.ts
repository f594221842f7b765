/** The hub's realtime channel: handshake, namespace, subscriptions, calls and events. */
import { randomUUID } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import { Server, type ServerOptions, type Socket } from 'socket.io'
import { isRecord } from '../base/json.ts'
import { APPS_URI, watchable } from './core/in-app.ts'
import { subscriptionInactive } from './faults.ts'
import { asHubError, HubError } from './hub-error.ts'
import { GENERATIONS } from './records.ts'
import { claimFault, type HubCore, matchMessage, type RequestRecord } from './rest.ts'
import { admit } from './scopes.ts'

const NAMESPACE = '/api'

export type Realtime = ReturnType<typeof realtimeChannel>

export function realtimeChannel(
  server: HttpServer,
  hub: HubCore,
  options: Pick<ServerOptions, 'pingInterval' | 'pingTimeout'>,
) {
  /** Connection → the key from its handshake. The namespace accepts only connections that have sent a key. */
  const keys = new WeakMap<Socket['client'], string>()
  const tokens = new WeakMap<Socket['client'], string>()
  const io = new Server(server, {
    transports: ['websocket'],
    // Accept version 3 of the protocol, which the hub's official client still uses.
    allowEIO3: true,
    perMessageDeflate: false,
    serveClient: false,
    ...options,
  })
  io.on('connection', (socket) => {
    socket.on('handshakeClient', (...args: unknown[]) => handshake(socket, args))
  })
  const api = io.of(NAMESPACE)
  api.use((socket, next) => {
    const refusal = refusalOfNamespace(socket)
    if (refusal === undefined) next()
    else next(Object.assign(new Error(refusal.message), { data: refused(refusal) }))
  })
  api.on('connection', welcome)
  const subscribers = (uri: string) => api.adapter.rooms.get(uri)?.size ?? 0

  function handshake(socket: Socket, args: readonly unknown[]): void {
    const [data] = args
    const key = isRecord(data) && typeof data['token'] === 'string' ? data['token'] : undefined
    answer({ method: 'EMIT', path: 'handshakeClient', key }, args, () => {
      if (hub.behaviours.has('subscription-inactive')) throw subscriptionInactive()
      refuseIf('refuse-handshake')
      admit(hub.keys, key, 'key')
      if (key !== undefined) keys.set(socket.client, key)
      if (!givesTokens()) return { namespace: NAMESPACE }
      const token = randomUUID()
      tokens.set(socket.client, token)
      return { namespace: NAMESPACE, token }
    })
  }

  function refusalOfNamespace(socket: Socket): HubError | undefined {
    try {
      refuseIf('refuse-namespace')
      admit(hub.keys, keys.get(socket.client), 'key')
      if (wantsToken(socket) && socket.handshake.auth['token'] !== tokens.get(socket.client)) {
        throw new HubError(401, 'invalid_token', 'Missing or unknown token')
      }
      return undefined
    } catch (thrown) {
      return asHubError(thrown)
    }
  }

  const givesTokens = () => GENERATIONS[hub.flavour].isNewer || hub.behaviours.has('namespace-token')

  /** Whether a connection must send a token with the namespace. In version 3 of the protocol, clients cannot do so. */
  const wantsToken = (socket: Socket) =>
    hub.behaviours.has('namespace-token') || (givesTokens() && socket.conn.protocol !== 3)

  function welcome(socket: Socket): void {
    if (hub.behaviours.claim('drop-realtime')) return void socket.disconnect()
    const on = (event: 'subscribe' | 'unsubscribe', task: (uri: string, key: string | undefined) => void) =>
      socket.on(event, (...args: unknown[]) => {
        const uri = worded(args[0])
        const key = keys.get(socket.client)
        answer({ method: 'EMIT', path: `${event} ${uri}`, key }, args, () => task(uri, key))
      })
    on('subscribe', (uri, key) => {
      refuseIf('refuse-subscription')
      admit(hub.keys, key, watchable(uri, hub.apps).needs)
      void socket.join(uri)
    })
    on('unsubscribe', (uri) => void socket.leave(uri))
    socket.on('api', (...args: unknown[]) => call(keys.get(socket.client), args))
  }

  function call(key: string | undefined, args: readonly unknown[]): void {
    const [message] = args
    const { uri, operation, args: body } = isRecord(message) ? message : {}
    const name = typeof operation === 'string' ? operation : undefined
    const path = `${worded(uri)} ${worded(operation)}`
    answer({ method: 'API', path, key, operation: name, body }, args, () => {
      const fault = claimFault(hub, name, 'socket')
      if (fault?.refusal !== undefined) throw fault.refusal
      const { endpoint, args: given } = matchMessage(message, hub.flavour)
      const scopes = admit(hub.keys, key, endpoint.needs)
      return endpoint.perform(hub, given, { scopes })
    })
  }

  /** Runs `task`, records the request, and acknowledges the result if the client requested an acknowledgement. */
  function answer(request: Omit<RequestRecord, 'at' | 'via'>, args: readonly unknown[], task: () => unknown): void {
    const entry = hub.remember({ via: 'socket', ...request })
    const acknowledge = acknowledgementOf(args)
    Promise.try(task)
      .then((result) => {
        entry.status = 200
        acknowledge(null, result ?? null)
      })
      .catch((thrown: unknown) => {
        const refusal = asHubError(thrown)
        entry.status = refusal.status
        acknowledge(refused(refusal))
      })
  }

  function refuseIf(behaviour: 'refuse-handshake' | 'refuse-namespace' | 'refuse-subscription'): void {
    const refusal = hub.behaviours.claim(behaviour)
    if (refusal !== undefined) throw new HubError(refusal.status ?? 500, 'refused', `The hub does ${behaviour}`)
  }

  return {
    counts: () => ({ sessions: api.sockets.size, subscribers: subscribers(APPS_URI) }),
    /** Sends an event to every subscriber of the URI. Encodes the event once, or not at all without subscribers. */
    send(uri: string, event: string, payload: unknown): void {
      if (subscribers(uri) > 0) api.to(uri).emit(uri, event, payload)
    },
    /** Closes all sessions with a disconnect packet. After this packet, the client library does not reconnect. */
    disconnectAll: () => void io.disconnectSockets(true),
    disconnectUnknown(): void {
      for (const socket of io.sockets.sockets.values()) {
        const key = keys.get(socket.client)
        if (key !== undefined && hub.keys(key) === undefined) socket.disconnect(true)
      }
    },
    close: () => io.close(),
  }
}

/** Returns the first argument of an acknowledgement. */
const refused = (refusal: HubError) => ({ statusCode: refusal.status, code: refusal.status, ...refusal.body() })

/** Converts a value to a string. `String` would throw for an object whose `toString` is not a function. */
const worded = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** Returns the client's acknowledgement function, which Socket.IO passes as the last argument, if there is one. */
function acknowledgementOf(args: readonly unknown[]): (error: unknown, result?: unknown) => void {
  const last = args.at(-1)
  return typeof last === 'function' ? (error, result) => void last(error, result) : () => {}
}
