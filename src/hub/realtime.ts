/**
 * The hub's realtime channel (Socket.IO 4). The client library itself does not reconnect after a refused login or a
 * disconnect by the server.
 */
import type { Logger } from 'pino'
import { Manager, type Socket } from 'socket.io-client'
import type { Backoff } from '../base/backoff.ts'
import { type Clock, sleep, within } from '../base/clock.ts'
import { isRecord } from '../base/json.ts'
import { withoutSlashes } from '../base/text.ts'
import type { AppEvent } from './app.ts'
import type { HubClientOptions } from './client.ts'
import { decodeEvent } from './decode.ts'
import { asHubError, HubError, type HubErrorCode, retryDelay } from './errors.ts'
import { lacksLicence } from './refusal.ts'
import { GuardedWebSocket } from './websocket.ts'

const APPS_URI = 'homey:manager:apps'
/** Maximum size of a message from the hub. App records are smaller. */
const MAX_MESSAGE_BYTES = 1024 * 1024

interface RealtimeOptions extends Pick<HubClientOptions, 'url' | 'clean'> {
  readonly apiKey: string
  readonly hubId: string | null
  /** Time limit for each step until the session is up, in milliseconds. */
  readonly timeoutMs: number
  /** How long a session must last before it is considered up. A hub may accept a session and drop it immediately. */
  readonly settleMs: number
  /** Called when the channel is connected, before the API key is sent. A HubError ends the session. */
  readonly prove: () => Promise<unknown>
  /** Called just before each message; if it throws, the session ends. */
  readonly beforeRequest?: (() => void) | undefined
  /** Called when the channel is subscribed to events, so that only the settling time remains. */
  readonly onSubscribed?: () => void
  readonly apps: { receive(event: AppEvent): void }
  readonly clock: Clock
  readonly signal: AbortSignal
}

interface RealtimeSession {
  /** Resolves with the reason when the session has ended. */
  readonly ended: Promise<string>
  close(): void
}

/**
 * Resolves when the session is up.
 * @throws HubError `unauthorized`, `forbidden`, `unreachable`, `rejected`, `no_answer` or `nonsense`
 */
export async function openRealtime(options: RealtimeOptions): Promise<RealtimeSession> {
  // An aborted signal emits no event, so nothing would close the session.
  if (options.signal.aborted) throw new HubError('unreachable', 'The realtime channel is no longer needed.')
  const { origin, pathname } = new URL(options.url)
  const manager = new Manager(origin, {
    // Keep the path of the hub's URL, because another server may answer at the root of the host.
    path: `${withoutSlashes(pathname)}/socket.io`,
    transports: [GuardedWebSocket],
    reconnection: false,
    autoConnect: false,
    timeout: options.timeoutMs,
    // The library's types lack this option, which it passes to the WebSocket.
    ...{ maxPayload: MAX_MESSAGE_BYTES },
  })
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const root = manager.socket('/')
  const sockets: Socket[] = [root]
  const close = () => {
    for (const socket of sockets.toReversed()) {
      socket.removeAllListeners()
      if (socket !== root && socket.connected) socket.emit('unsubscribe', APPS_URI)
      socket.disconnect()
    }
    manager.removeAllListeners()
    end('closed')
  }
  const watch = (socket: Socket) => {
    socket.on('disconnect', (reason) => end(reason))
    socket.on('connect_error', (error) => end(error.message))
  }
  manager.on('close', (reason) => end(reason))
  options.signal.addEventListener('abort', close, { once: true })
  try {
    watch(root)
    await connected(root, options, ended)
    await options.prove()
    const [, welcome] = await emitWithAck(root, options, ended, 'handshakeClient', {
      token: options.apiKey,
      homeyId: options.hubId,
    })
    const { namespace, token }: Record<string, unknown> = isRecord(welcome) ? welcome : {}
    if (typeof namespace !== 'string' || !namespace.startsWith('/')) {
      throw new HubError('nonsense', 'The hub did not name a realtime namespace.')
    }
    const api = manager.socket(namespace, typeof token === 'string' ? { auth: { token } } : {})
    sockets.push(api)
    watch(api)
    api.on(APPS_URI, (name: unknown, payload: unknown) => {
      const event = decodeEvent(name, payload, options.clean)
      if (event !== undefined) options.apps.receive(event)
    })
    await connected(api, options, ended)
    await emitWithAck(api, options, ended, 'subscribe', APPS_URI)
    options.onSubscribed?.()
    const reason = await within(options.clock, options.settleMs, ended)
    if (reason !== undefined) throw closed(reason)
    return { ended, close }
  } catch (error) {
    close()
    throw error
  } finally {
    void ended.then(() => options.signal.removeEventListener('abort', close))
  }
}

async function connected(socket: Socket, options: RealtimeOptions, ended: Promise<string>): Promise<void> {
  const { promise: up, resolve } = Promise.withResolvers<void>()
  socket.once('connect', resolve)
  socket.connect()
  await inTime(up, options, ended)
}

/** Emits a message and waits for its acknowledgement `(error, …result)`. */
async function emitWithAck(
  socket: Socket,
  options: RealtimeOptions,
  ended: Promise<string>,
  event: string,
  argument: unknown,
): Promise<unknown[]> {
  options.beforeRequest?.()
  const { promise, resolve } = Promise.withResolvers<unknown[]>()
  socket.emit(event, argument, (...answer: unknown[]) => resolve(answer))
  const answer = await inTime(promise, options, ended)
  const refusal = answer[0]
  if (refusal !== null && refusal !== undefined) throw refused(refusal)
  return answer
}

/** Rejects if the session ends or the step times out. */
async function inTime<T>(step: Promise<T>, { clock, timeoutMs }: RealtimeOptions, ended: Promise<string>): Promise<T> {
  const broken = ended.then((reason) => Promise.reject(closed(reason)))
  const done = await within(clock, timeoutMs, Promise.race([step.then((result) => ({ result })), broken]))
  if (done === undefined) throw new HubError('no_answer', 'The realtime channel did not answer.')
  return done.result
}

const closed = (reason: string) => new HubError('unreachable', `The realtime channel closed: ${reason}.`)

const textIn = (value: unknown) => (typeof value === 'string' ? value : '')

const CODES: Readonly<Record<number, HubErrorCode>> = { 401: 'unauthorized', 403: 'forbidden' }

/** Converts an acknowledgement's error: `{statusCode | code, error, error_description}`, or a plain string. */
function refused(refusal: unknown): HubError {
  const { statusCode, code, error, error_description }: Record<string, unknown> = isRecord(refusal) ? refusal : {}
  const status = statusCode ?? code
  if (typeof status !== 'number') return new HubError('rejected', 'The hub refused the realtime channel.')
  if (status === 403 && lacksLicence(`${textIn(error)} ${textIn(error_description)}`)) {
    return new HubError('subscription', 'The hub has no valid licence.', { status })
  }
  return new HubError(CODES[status] ?? 'rejected', `The hub refused the realtime channel (${status}).`, { status })
}

/** After a session shorter than this, the back-off continues. */
const STABLE_MS = 30_000

interface RealtimeLoop {
  /** Opens a session. @throws HubError */
  readonly open: () => Promise<RealtimeSession>
  /** Called when a session is up; if it rejects with a HubError, the session is closed. */
  readonly onUp: () => Promise<void>
  /** Called when a session that was up has ended. */
  readonly onLost: () => void
  readonly backoff: Backoff
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Opens one session after another, with back-off, until the signal aborts. */
export async function keepRealtime({ open, onUp, onLost, backoff, clock, log, signal }: RealtimeLoop): Promise<void> {
  let loggedCode: string | undefined
  while (!signal.aborted) {
    let delay: number
    let session: RealtimeSession | undefined
    try {
      session = await open()
      const since = clock.elapsed()
      await onUp()
      if (!signal.aborted) log.info('realtime channel up')
      const reason = await session.ended
      if (clock.elapsed() - since >= STABLE_MS) backoff.reset()
      onLost()
      delay = backoff.next()
      loggedCode = undefined
      if (!signal.aborted) log.warn({ channel: reason }, 'realtime channel lost, polling instead')
    } catch (error) {
      const failure = asHubError(error)
      delay = retryDelay(failure, backoff)
      if (!signal.aborted && loggedCode !== failure.code)
        log.warn({ reason: failure.code }, `polling, because there is no realtime channel: ${failure.message}`)
      loggedCode = failure.code
    } finally {
      session?.close()
    }
    await sleep(clock, delay, signal)
  }
}
