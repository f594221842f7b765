/** Connects for a short task, with the bridge's login and MQTT versions. */
import type { IPublishPacket } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { ExpectedError } from '../base/errors.ts'
import { Login } from './addresses.ts'
import { CLOSED_BY_US, Connection } from './connection.ts'
import { errorFailure, type Failure } from './failure.ts'
import { streamOpener } from './stream.ts'
import type { BrokerOptions, LinkOptions } from './types.ts'

export interface SessionOptions {
  readonly broker: BrokerOptions & Pick<LinkOptions, 'credentials'>
  /** Must be unique, because another client with the same id would lose its connection. */
  readonly clientId: string
  /** The time limit of the task, including the time to connect; default: no limit. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly onPublish?: ((packet: IPublishPacket) => void) | undefined
  readonly onNoSubscribers?: (() => void) | undefined
}

const CONNECT_TIMEOUT_MS = 10_000

export type SessionErrorCode = 'no_connection' | 'timeout' | 'subscription_denied' | 'publish_denied' | 'no_subscribers'

/** Thrown if no connection could be made, the connection was lost during the task, or the time limit was exceeded. */
export class SessionError extends ExpectedError {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode
  readonly failure: Failure | undefined

  constructor(code: SessionErrorCode, message: string, failure?: Failure) {
    super(message)
    this.code = code
    this.failure = failure
  }
}

/** Connects, runs `task` and disconnects. @throws SessionError and errors of `task` */
export async function withSession<T>(
  options: SessionOptions,
  clock: Clock,
  task: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = options
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const giveUp = () => late.reject(new SessionError('timeout', `no answer within ${timeoutMs} ms`))
  const cancel = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, giveUp)
  const stop = () => late.reject(new SessionError('no_connection', 'stopped'))
  signal?.addEventListener('abort', stop)
  let connection: Connection | undefined
  try {
    if (signal?.aborted) stop()
    connection = await connectToAny(options, late.promise)
    const lost = connection.down.then((failure) => Promise.reject(noConnection(failure)))
    return await Promise.race([task(connection), lost, late.promise])
  } finally {
    cancel()
    signal?.removeEventListener('abort', stop)
    connection?.drop(CLOSED_BY_US)
  }
}

/** Tries the addresses in turn. If none accepts a connection, rejects with the failure of the first address. */
async function connectToAny(options: SessionOptions, late: Promise<never>): Promise<Connection> {
  const { urls, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options.broker
  // Leave time for the other addresses if one does not respond.
  const { timeoutMs = Number.POSITIVE_INFINITY } = options
  const maxConnectMs = urls.length > 1 ? timeoutMs / (urls.length + 1) : Number.POSITIVE_INFINITY
  const failures: unknown[] = []
  for (const url of urls) {
    try {
      return await connect(url, Math.min(connectTimeoutMs, maxConnectMs), options, late)
    } catch (error) {
      if (!(error instanceof SessionError) || error.code === 'timeout') throw error
      failures.push(error)
    }
  }
  throw failures[0] ?? new TypeError('a session needs the address of a broker')
}

async function connect(
  url: string,
  connectTimeoutMs: number,
  { broker, clientId, onPublish = () => {}, onNoSubscribers }: SessionOptions,
  late: Promise<never>,
): Promise<Connection> {
  const login = new Login(url, broker)
  for (;;) {
    const { credentials, protocol } = login
    const { keepaliveMs } = broker
    const openStream = await streamOpener(url, { ...broker, connectTimeoutMs })
    const options = { ...credentials, clientId, protocol, keepaliveMs, connectTimeoutMs, onPublish, onNoSubscribers }
    let connection: Connection | undefined
    try {
      connection = new Connection(openStream, options)
      const failure = await Promise.race([connection.accepted, connection.down, late])
      if (failure === undefined) return connection
      if (!(await login.retry(failure))) throw noConnection(failure)
    } catch (error) {
      connection?.drop(CLOSED_BY_US)
      // An invalid certificate causes an error before a connection is opened.
      throw connection === undefined ? noConnection(errorFailure(error, false)) : error
    }
  }
}

const noConnection = (failure: Failure) =>
  new SessionError('no_connection', `no connection to the MQTT broker (${failure.code}): ${failure.detail}`, failure)
