/** Keeps the bridge connected to a broker. When the connection ends, reconnects with a back-off. */
import type { IPublishPacket } from 'mqtt'
import type { Logger } from 'pino'
import { type Clock, sleep, within } from '../base/clock.ts'
import { Addresses, type Ended } from './addresses.ts'
import { CLOSED_BY_US, Connection } from './connection.ts'
import { errorFailure, type Failure, lackFailure } from './failure.ts'
import type { Journal } from './journal.ts'
import { SessionError, withSession } from './session.ts'
import { streamOpener } from './stream.ts'
import type { FailureCode, LinkOptions, LinkStatus, Protocol } from './types.ts'

/** How long a broker may take to answer before a deliberate reconnect, and to close its side after DISCONNECT. */
const CLOSE_TIMEOUT_MS = 1_000
const TRIAL_TIMEOUT_MS = 30_000

export interface ConnectionLoopOptions {
  readonly link: LinkOptions
  readonly clock: Clock
  readonly log: Logger
  readonly journal: Journal
  /** Returns a number in [0, 1). */
  readonly random: () => number
  readonly onState?: () => void
  readonly onAccepted: (connection: Connection) => Promise<void>
  readonly onPublish: (packet: IPublishPacket) => void
  /** Whether the acknowledgement of a command is postponed until `connection.acknowledge`. */
  readonly postponesAck?: () => boolean
  /** Called when an accepted connection has ended. Returns whether the cause is known. */
  readonly onLost?: (failure: Failure) => boolean
  /** Whether ending the connection now would cause messages to be resent, or affect a running command. */
  readonly isBusy?: () => boolean
  readonly onStartOver?: () => void
}

export class ConnectionLoop {
  /** The current connection, even if the broker has not accepted it yet. */
  connection: Connection | undefined
  /** The number of the latest connection, starting at 1. A message with a lower number is outdated. */
  number = 0
  state: LinkStatus['state'] = 'stopped'
  reason: FailureCode | undefined
  readonly #options: ConnectionLoopOptions
  readonly #addresses: Addresses
  readonly #failbackProbe: ReturnType<typeof failbackProbe>
  readonly #stop = new AbortController()
  #startingOver = false

  constructor(options: ConnectionLoopOptions) {
    this.#options = options
    this.#addresses = new Addresses(options.link, options)
    const onOpen = () => {
      this.startOver()
      this.#addresses.prefer()
    }
    this.#failbackProbe = failbackProbe(options, onOpen)
  }

  get stopped(): boolean {
    return this.#stop.signal.aborted
  }

  async run(): Promise<void> {
    const { clock, journal } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      const { failure, ended } = await this.#connectOnce()
      if (signal.aborted) return
      if (this.#startingOver) {
        this.#startingOver = false
        continue
      }
      const { login, pacing } = this.#addresses.current
      if (await login.retry(failure)) continue
      journal.failed(failure, ended?.livedMs, this.#addresses.name)
      const wait = this.#addresses.next(failure, ended)
      if (pacing.suspicious) {
        journal.warnOnce(
          'unstable',
          'the MQTT broker ends every connection soon: does another client use this client id?',
        )
      }
      this.setState(wait === 0 ? 'connecting' : 'waiting', failure.code)
      if (wait > 0) await sleep(clock, wait, signal)
    }
  }

  /** Stops opening connections. The caller ends the current connection. */
  stop(): void {
    this.#stop.abort()
    this.#failbackProbe.stop()
  }

  /** Ends the current connection cleanly and reconnects immediately. Does nothing while disconnected. */
  startOver(): void {
    const { connection } = this
    if (connection?.isAccepted) void this.#startOver(connection)
  }

  async #startOver(connection: Connection): Promise<void> {
    const { clock, link, onStartOver } = this.#options
    // During a suspension, the broker may have ended the connection, and another bridge may have become active. The
    // UNSUBACK shows that the connection is still up. No subscription to this filter exists.
    const answered = connection.unsubscribe([`${link.stateTopic}/none`]).then(() => true)
    const isServed = (await within(clock, CLOSE_TIMEOUT_MS, answered)) === true
    if (connection.isDown) return
    this.#startingOver = true
    if (isServed) onStartOver?.()
    void connection.end()
    clock.after(CLOSE_TIMEOUT_MS, () => connection.drop(CLOSED_BY_US))
  }

  /** Runs `task` on a separate connection without a will. Resolves to the failure of that connection, if any. */
  async aside(task: (connection: Connection) => Promise<void>, signal: AbortSignal): Promise<Failure | undefined> {
    const { link, clock } = this.#options
    const { url, login } = this.#addresses.current
    const broker = { ...link, urls: [url], protocol: login.protocol }
    const session = { broker, clientId: `${link.clientId}-trial`, timeoutMs: TRIAL_TIMEOUT_MS, signal }
    try {
      await withSession(session, clock, task)
      return undefined
    } catch (error) {
      if (error instanceof SessionError) return error.failure ?? { code: 'timeout', detail: error.message }
      return errorFailure(error, false)
    }
  }

  /** Call this when the session of an accepted connection has been set up. */
  ready(protocol: Protocol): void {
    const { preferred, name } = this.#addresses
    this.#options.journal.connected(protocol, name)
    this.setState('connected', undefined)
    if (preferred !== undefined) this.#failbackProbe.start(preferred.url)
  }

  setState(state: LinkStatus['state'], reason: FailureCode | undefined): void {
    if (this.state === state && this.reason === reason) return
    this.state = state
    this.reason = reason
    this.#options.onState?.()
  }

  /** Resolves after the end of the connection. `ended` is `undefined` if the broker did not accept the connection. */
  async #connectOnce(): Promise<{ readonly failure: Failure; readonly ended?: Ended }> {
    const { link, clock, onAccepted, onPublish, postponesAck, onLost } = this.#options
    this.setState('connecting', this.reason)
    try {
      const openStream = await streamOpener(this.#addresses.current.url, link)
      if (this.stopped) return { failure: CLOSED_BY_US }
      this.number += 1
      const { credentials, protocol } = this.#addresses.current.login
      const connection = new Connection(openStream, {
        ...link,
        ...credentials,
        protocol,
        willTopic: link.stateTopic,
        onPublish,
        postponesAck,
      })
      this.connection = connection
      const refusal = await Promise.race([connection.accepted, connection.down])
      const { lack } = connection
      const unusable = refusal ?? (lack === undefined ? undefined : lackFailure(lack))
      if (unusable !== undefined) {
        connection.drop(unusable)
        return { failure: unusable }
      }
      const acceptedAt = clock.elapsed()
      await Promise.race([onAccepted(connection), connection.down])
      const failure = await connection.down
      const explained = onLost?.(failure) ?? false
      return { failure, ended: { livedMs: clock.elapsed() - acceptedAt, protocol: connection.protocol, explained } }
    } catch (error) {
      return { failure: errorFailure(error, false) }
    } finally {
      this.#failbackProbe.stop()
      this.connection = undefined
    }
  }
}

const PROBE_INTERVAL_MS = 5 * 60_000
/** If the preferred address is lost again soon after each return, the interval doubles, up to this factor. */
const MAX_INTERVALS = 16
const PROBE_TIMEOUT_MS = 10_000
const BUSY_MS = { max: 60_000, step: 250 }

/** Tests whether the preferred address accepts connections again, while the link uses a different address. */
export function failbackProbe(
  { link, clock, random, isBusy }: Pick<ConnectionLoopOptions, 'link' | 'clock' | 'random' | 'isBusy'>,
  onOpen: () => void,
) {
  const { preferredAfterMs = PROBE_INTERVAL_MS } = link
  let stop = new AbortController()
  let intervals = 1
  let openedAt = Number.NEGATIVE_INFINITY

  async function run(url: string, intervalMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Add jitter, because the bridges in a home should not all return to a restarted broker at the same time.
      await sleep(clock, intervalMs * (0.75 + 0.5 * random()), signal)
      if (signal.aborted || !(await acceptsConnections(url, signal))) continue
      // Wait for a moment at which no message is in flight and no command is running.
      const until = clock.elapsed() + BUSY_MS.max
      while (isBusy?.() && clock.elapsed() < until && !signal.aborted) await sleep(clock, BUSY_MS.step, signal)
      if (signal.aborted) return
      openedAt = clock.elapsed()
      return onOpen()
    }
  }

  async function acceptsConnections(url: string, signal: AbortSignal): Promise<boolean> {
    const broker = { ...link, urls: [url] }
    // If the probe used the bridge's client id, a broker cluster would end the current connection.
    const session = { broker, clientId: `${link.clientId}-look`, timeoutMs: PROBE_TIMEOUT_MS, signal }
    return await withSession(session, clock, async ({ lack }) => lack === undefined).catch(() => false)
  }

  return {
    start(url: string): void {
      stop.abort()
      stop = new AbortController()
      const wasLostSoon = clock.elapsed() - openedAt < preferredAfterMs
      intervals = wasLostSoon ? Math.min(MAX_INTERVALS, intervals * 2) : 1
      void run(url, intervals * preferredAfterMs, stop.signal)
    },

    stop: () => stop.abort(),
  }
}
