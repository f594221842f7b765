/** The hub's realtime channel: handshake, namespace, subscriptions, calls and events. */
import { randomUUID } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import { Server, type Socket } from 'socket.io'
import { isRecord } from '../base/json.ts'
import { APPS_URI, watchable } from './core/in-app.ts'
import { subscriptionInactive } from './faults.ts'
import { asHubError, HubError } from './hub-error.ts'
import { GENERATIONS } from './records.ts'
import { claimFault, type HubCore, matchMessage } from './rest.ts'
import { admit } from './scopes.ts'

const NAMESPACE = '/api'

type Acknowledge = (error: unknown, result?: unknown) => void

export class Realtime {
  readonly #hub: HubCore
  readonly #io: Server
  /** The key of each connection. A namespace on another connection has no key. */
  readonly #keys = new WeakMap<Socket['client'], string>()
  /** The token that each connection received in its handshake, for its namespace. */
  readonly #tokens = new WeakMap<Socket['client'], string>()

  constructor(server: HttpServer, hub: HubCore, options: { pingInterval: number; pingTimeout: number }) {
    this.#hub = hub
    this.#io = new Server(server, {
      transports: ['websocket'],
      // The hub's official client still uses the previous protocol version.
      allowEIO3: true,
      perMessageDeflate: false,
      serveClient: false,
      ...options,
    })
    this.#io.on('connection', (socket) => {
      socket.on('handshakeClient', (...args: unknown[]) => this.#handshake(socket, args))
    })
    const api = this.#io.of(NAMESPACE)
    api.use((socket, next) => {
      const refusal = this.#refuseNamespace(socket)
      if (refusal === undefined) next()
      else next(Object.assign(new Error(refusal.message), { data: refusal.acknowledgement() }))
    })
    api.on('connection', (socket) => this.#welcome(socket))
  }

  /** The numbers of sessions with an open namespace, and of sessions subscribed to the apps. */
  get counts(): { sessions: number; subscribers: number } {
    const { sockets, adapter } = this.#io.of(NAMESPACE)
    return { sessions: sockets.size, subscribers: adapter.rooms.get(APPS_URI)?.size ?? 0 }
  }

  /** Sends an event to every subscriber of the URI. Encodes it once, and not at all without subscribers. */
  send(uri: string, event: string, payload: unknown): void {
    const namespace = this.#io.of(NAMESPACE)
    if ((namespace.adapter.rooms.get(uri)?.size ?? 0) > 0) namespace.to(uri).emit(uri, event, payload)
  }

  /** Ends all sessions with a goodbye, after which the client library does not reconnect. */
  disconnectAll(): void {
    this.#io.disconnectSockets(true)
  }

  /** Ends the sessions whose key is no longer valid. */
  disconnectUnknown(): void {
    for (const socket of this.#io.sockets.sockets.values()) {
      const key = this.#keys.get(socket.client)
      if (key !== undefined && this.#hub.keys(key) === undefined) socket.disconnect(true)
    }
  }

  async close(): Promise<void> {
    await this.#io.close()
  }

  #handshake(socket: Socket, args: readonly unknown[]): void {
    const [data] = args
    const key = isRecord(data) && typeof data['token'] === 'string' ? data['token'] : undefined
    this.#answer('handshakeClient', key, undefined, args, () => {
      if (this.#hub.behaviours.has('subscription-inactive')) throw subscriptionInactive()
      this.#refuseIf('refuse-handshake')
      admit(this.#hub.keys, key, 'key')
      if (key !== undefined) this.#keys.set(socket.client, key)
      if (!this.#givesTokens) return { namespace: NAMESPACE }
      const token = randomUUID()
      this.#tokens.set(socket.client, token)
      return { namespace: NAMESPACE, token }
    })
  }

  #refuseNamespace(socket: Socket): HubError | undefined {
    try {
      this.#refuseIf('refuse-namespace')
      admit(this.#hub.keys, this.#keys.get(socket.client), 'key')
      if (this.#wantsToken(socket) && socket.handshake.auth['token'] !== this.#tokens.get(socket.client)) {
        throw new HubError(401, 'invalid_token', 'Missing or unknown token')
      }
      return undefined
    } catch (thrown) {
      return asHubError(thrown)
    }
  }

  get #givesTokens(): boolean {
    return GENERATIONS[this.#hub.flavour].isNewer || this.#hub.behaviours.has('namespace-token')
  }

  /** Protocol 3, which the hub's official client uses, cannot send a token when it opens a namespace. */
  #wantsToken(socket: Socket): boolean {
    return this.#hub.behaviours.has('namespace-token') || (this.#givesTokens && socket.conn.protocol !== 3)
  }

  #welcome(socket: Socket): void {
    if (this.#hub.behaviours.claim('drop-realtime')) return void socket.disconnect()
    const key = () => this.#keys.get(socket.client)
    const on = (event: 'subscribe' | 'unsubscribe', task: (uri: string) => void) =>
      socket.on(event, (...args: unknown[]) => {
        const uri = worded(args[0])
        this.#answer(`${event} ${uri}`, key(), undefined, args, () => task(uri))
      })
    on('subscribe', (uri) => {
      this.#refuseIf('refuse-subscription')
      admit(this.#hub.keys, key(), watchable(uri, this.#hub.apps).needs)
      void socket.join(uri)
    })
    on('unsubscribe', (uri) => void socket.leave(uri))
    socket.on('api', (...args: unknown[]) => this.#call(key(), args))
  }

  #call(key: string | undefined, args: readonly unknown[]): void {
    const [message] = args
    const { uri, operation, args: given } = isRecord(message) ? message : {}
    const name = typeof operation === 'string' ? operation : undefined
    this.#answer(`${worded(uri)} ${worded(operation)}`, key, { operation: name, body: given }, args, () => {
      const fault = claimFault(this.#hub, name, 'socket')
      if (fault?.refusal !== undefined) throw fault.refusal
      const call = matchMessage(message, this.#hub.flavour)
      const scopes = admit(this.#hub.keys, key, call.endpoint.needs)
      return call.endpoint.perform(this.#hub, call.args, { scopes })
    })
  }

  /** Runs `task`, records the request, and acknowledges the result if the client requested that. */
  #answer(
    path: string,
    key: string | undefined,
    call: { operation: string | undefined; body: unknown } | undefined,
    args: readonly unknown[],
    task: () => unknown,
  ): void {
    const entry = this.#hub.remember({
      via: 'socket',
      method: call === undefined ? 'EMIT' : 'API',
      path,
      ...(call?.operation === undefined ? {} : { operation: call.operation }),
      ...(key === undefined ? {} : { key }),
      body: call?.body,
    })
    const acknowledge = acknowledgementOf(args)
    const settle = (result: unknown) => {
      entry.status = 200
      acknowledge(null, result ?? null)
    }
    const refuse = (thrown: unknown) => {
      const refusal = asHubError(thrown)
      entry.status = refusal.status
      acknowledge(refusal.acknowledgement())
    }
    try {
      const result = task()
      if (result instanceof Promise) void result.then(settle).catch(refuse)
      else settle(result)
    } catch (thrown) {
      refuse(thrown)
    }
  }

  #refuseIf(behaviour: 'refuse-handshake' | 'refuse-namespace' | 'refuse-subscription'): void {
    const refusal = this.#hub.behaviours.claim(behaviour)
    if (refusal !== undefined) throw new HubError(refusal.status ?? 500, 'refused', `The hub does ${behaviour}`)
  }
}

/** Untrusted input as text: an object may have a `toString` that is not a function. */
const worded = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** The acknowledgement function, if the client passed one. */
function acknowledgementOf(args: readonly unknown[]): Acknowledge {
  const last = args.at(-1)
  return typeof last === 'function' ? (error, result) => void last(error, result) : () => {}
}
