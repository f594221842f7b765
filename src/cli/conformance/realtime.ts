/** The realtime channel, one step after the other, and where it ends. */

import { Manager, type Socket } from 'socket.io-client'
import { WebSocket } from 'ws'
import { sleep } from '../../base/clock.ts'
import { isRecord } from '../../base/json.ts'
import { withoutSlashes } from '../../base/text.ts'
import { GuardedWebSocket } from '../../hub/websocket.ts'
import type { ConformanceOptions } from './conformance.ts'

const APPS_URI = 'homey:manager:apps'
/** A hub can accept a namespace and drop it at once. */
const SETTLE_MS = 600

export type Step = 'ok' | 'refused' | 'dropped' | 'silent' | 'not_tried'

export interface SessionSeen {
  readonly connect: Step
  readonly handshake: Step
  readonly namespace: string | null
  readonly tokenOffered: boolean
  readonly open: Step
  readonly subscribe: Step
}

export interface HubEvent {
  readonly name: string
  readonly payload: Record<string, unknown>
}

/** A session that went as far as it could; it hears events while it is open. */
export class Session {
  seen: SessionSeen = {
    connect: 'not_tried',
    handshake: 'not_tried',
    namespace: null,
    tokenOffered: false,
    open: 'not_tried',
    subscribe: 'not_tried',
  }
  readonly events: HubEvent[] = []
  readonly #options: Pick<ConformanceOptions, 'key' | 'timeoutMs' | 'clock'>
  readonly #hubId: string | null
  readonly #prove: () => Promise<boolean>
  readonly #withToken: boolean
  readonly #manager: Manager
  readonly #sockets: Socket[] = []
  #onEvent: () => void = () => {}

  /**
   * @param prove whether the hub is there, asked before the connection is shown the key
   * @param withToken whether to show the token of the handshake to the namespace
   */
  constructor(
    options: Pick<ConformanceOptions, 'url' | 'key' | 'timeoutMs' | 'clock'>,
    hubId: string | null,
    prove: () => Promise<boolean>,
    withToken: boolean,
  ) {
    this.#options = options
    this.#hubId = hubId
    this.#prove = prove
    this.#withToken = withToken
    const { origin, pathname } = new URL(options.url)
    this.#manager = new Manager(origin, {
      path: `${withoutSlashes(pathname)}/socket.io`,
      transports: [GuardedWebSocket],
      reconnection: false,
      autoConnect: false,
      timeout: options.timeoutMs,
    })
  }

  async run(): Promise<void> {
    const { key } = this.#options
    const [hubId, withToken] = [this.#hubId, this.#withToken]
    const root = this.#socket('/')
    const connect = await this.#connect(root)
    this.#saw({ connect })
    if (connect !== 'ok' || !(await this.#prove())) return
    const [handshake, welcome] = await this.#emit(root, 'handshakeClient', { token: key, homeyId: hubId })
    const { namespace, token } = isRecord(welcome) ? welcome : {}
    const name = typeof namespace === 'string' && namespace.startsWith('/') ? namespace : null
    this.#saw({ handshake, namespace: name, tokenOffered: typeof token === 'string' })
    if (handshake !== 'ok' || name === null) return
    const api = this.#socket(name, withToken && typeof token === 'string' ? { auth: { token } } : {})
    api.on(APPS_URI, (event: unknown, payload: unknown) => {
      if (typeof event === 'string' && isRecord(payload)) this.events.push({ name: event, payload })
      this.#onEvent()
    })
    const open = await this.#connect(api)
    this.#saw({ open: open === 'ok' ? await this.#settled(api) : open })
    if (this.seen.open !== 'ok') return
    const [subscribe] = await this.#emit(api, 'subscribe', APPS_URI)
    this.#saw({ subscribe })
  }

  /** Whether an event comes that satisfies `wanted`, from `from` on. */
  async hears(from: number, wanted: (event: HubEvent) => boolean, ms: number): Promise<boolean> {
    const { clock } = this.#options
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const look = () => this.events.slice(from).some(wanted) && resolve(true)
    const cancel = clock.after(ms, () => resolve(false))
    this.#onEvent = look
    look()
    return await promise.finally(cancel)
  }

  /** Whether events can still come. */
  get isOpen(): boolean {
    return this.seen.subscribe === 'ok' && this.#sockets.every(({ connected }) => connected)
  }

  close(): void {
    for (const socket of this.#sockets.toReversed()) {
      socket.removeAllListeners()
      socket.disconnect()
    }
    this.#manager.removeAllListeners()
    this.#manager._close()
  }

  #saw(part: Partial<SessionSeen>): void {
    this.seen = { ...this.seen, ...part }
  }

  #socket(namespace: string, options: { auth?: { token: string } } = {}): Socket {
    const socket = this.#manager.socket(namespace, options)
    this.#sockets.push(socket)
    return socket
  }

  #connect(socket: Socket): Promise<Step> {
    const { promise, resolve } = Promise.withResolvers<Step>()
    socket.once('connect', () => resolve('ok'))
    socket.once('connect_error', () => resolve('refused'))
    socket.once('disconnect', () => resolve('dropped'))
    socket.connect()
    return this.#inTime(promise, 'silent')
  }

  async #emit(socket: Socket, event: string, argument: unknown): Promise<[Step, unknown?]> {
    const { promise, resolve } = Promise.withResolvers<[Step, unknown?]>()
    socket.once('disconnect', () => resolve(['dropped']))
    socket.emit(event, argument, (error: unknown, result: unknown) =>
      resolve(error === null || error === undefined ? ['ok', result] : ['refused']),
    )
    return await this.#inTime(promise, ['silent'])
  }

  async #settled(socket: Socket): Promise<Step> {
    await sleep(this.#options.clock, SETTLE_MS)
    return socket.connected ? 'ok' : 'dropped'
  }

  #inTime<T>(step: Promise<T>, late: T): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    const cancel = this.#options.clock.after(this.#options.timeoutMs, () => resolve(late))
    return Promise.race([step, promise]).finally(cancel)
  }
}

/** Whether a hub takes a version of the protocol below Socket.IO; no key is shown. */
export async function speaks(version: 3 | 4, url: string, timeoutMs: number): Promise<boolean> {
  const base = withoutSlashes(url.replace(/^http/, 'ws'))
  const socket = new WebSocket(`${base}/socket.io/?EIO=${version}&transport=websocket`, { handshakeTimeout: timeoutMs })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.on('error', () => resolve(false))
  socket.on('close', () => resolve(false))
  socket.on('message', (data) => resolve(Buffer.isBuffer(data) && data.toString('utf8', 0, 2) === '0{'))
  const late = setTimeout(() => resolve(false), timeoutMs)
  try {
    return await promise
  } finally {
    clearTimeout(late)
    socket.terminate()
  }
}
