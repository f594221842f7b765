/** Keeps a broker connected: one connection after the other, with growing waits between those that fail. */
import type { Duplex } from 'node:stream'
import type { IPublishPacket } from 'mqtt'
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import { CLOSED_BY_US, Connection } from './connection.ts'
import { errorFailure, type Failure, lackFailure } from './failure.ts'
import type { Journal } from './journal.ts'
import { Login } from './login.ts'
import { type Ended, Pacing } from './pacing.ts'
import { streamOpener } from './stream.ts'
import type { FailureCode, LinkOptions, LinkStatus } from './types.ts'

/** How long a broker may take to close its side after DISCONNECT. */
const GOODBYE_MS = 1_000

export interface ConnectionLoopOptions {
  readonly link: LinkOptions
  readonly clock: Clock
  readonly log: Logger
  readonly journal: Journal
  readonly random: () => number
  readonly onState: (state: LinkStatus['state'], reason: FailureCode | undefined) => void
  /** The broker accepted a connection. */
  readonly onAccepted: (connection: Connection) => Promise<void>
  /** `connection` is the number of the connection that brought the packet. */
  readonly onPublish: (packet: IPublishPacket, connection: number) => void
  /** Whether the acknowledgement of a command is postponed until `connection.acknowledge`. */
  readonly postponesAck: () => boolean
  /** An accepted connection has ended. */
  /** Returns whether it is known what ended the connection. */
  readonly onLost: (failure: Failure) => boolean
}

export class ConnectionLoop {
  readonly #options: ConnectionLoopOptions
  readonly #login: Login
  readonly #pacing: Pacing
  readonly #stop = new AbortController()
  #connection: Connection | undefined
  #number = 0
  #startingOver = false
  /** Why the last connection failed, until the next one is set up. */
  #reason: FailureCode | undefined

  constructor(options: ConnectionLoopOptions) {
    this.#options = options
    this.#login = new Login(options.link, options.log)
    this.#pacing = new Pacing(options.random)
  }

  /** The present connection, accepted or not; undefined while there is none. */
  get connection(): Connection | undefined {
    return this.#connection
  }

  /** Counts connections from 1. */
  get number(): number {
    return this.#number
  }

  get stopped(): boolean {
    return this.#stop.signal.aborted
  }

  /** Connects again and again until `stop`. */
  async run(): Promise<void> {
    const { clock, journal } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      const { failure, ended } = await this.#connectOnce()
      if (signal.aborted) return
      if (this.#takeStartingOver() || (await this.#login.retry(failure))) continue
      journal.failed(failure, ended?.livedMs)
      const wait = this.#pacing.after(failure, ended)
      if (this.#pacing.suspicious) {
        journal.warnOnce(
          'unsteady',
          'the MQTT broker ends every connection soon: does another client use this client id?',
        )
      }
      this.#setState('waiting', failure.code)
      await sleep(clock, wait, signal)
      this.#login.reset()
    }
  }

  /** Makes no further connection. The present one is the caller's to end. */
  stop(): void {
    this.#stop.abort()
  }

  /** Ends the present connection in good order and connects at once. */
  startOver(): void {
    const connection = this.#connection
    if (!connection?.isAccepted) return
    this.#startingOver = true
    void connection.end()
    this.#options.clock.after(GOODBYE_MS, () => connection.drop(CLOSED_BY_US))
  }

  /** `onAccepted` has done what a new connection needs. */
  ready(): void {
    this.#setState('connected', undefined)
  }

  #setState(state: LinkStatus['state'], reason: FailureCode | undefined): void {
    this.#reason = reason
    this.#options.onState(state, reason)
  }

  #takeStartingOver(): boolean {
    const startingOver = this.#startingOver
    this.#startingOver = false
    return startingOver
  }

  /** One connection from its opening to its end. `ended` is undefined where it was never accepted. */
  async #connectOnce(): Promise<{ readonly failure: Failure; readonly ended?: Ended }> {
    const { link, clock, onAccepted, onLost } = this.#options
    this.#setState('connecting', this.#reason)
    try {
      const openStream = await streamOpener(link)
      if (this.stopped) return { failure: CLOSED_BY_US }
      const connection = this.#open(openStream)
      this.#connection = connection
      const refusal = await Promise.race([connection.accepted, connection.down])
      if (refusal !== undefined) return { failure: refusal }
      const { lack } = connection
      if (lack !== undefined) {
        const failure = lackFailure(lack)
        connection.drop(failure)
        return { failure }
      }
      const acceptedAt = clock.elapsed()
      await Promise.race([onAccepted(connection), connection.down])
      const failure = await connection.down
      const explained = onLost(failure)
      return { failure, ended: { livedMs: clock.elapsed() - acceptedAt, protocol: connection.protocol, explained } }
    } catch (error) {
      return { failure: errorFailure(error instanceof Error ? error : new Error(String(error)), false) }
    } finally {
      this.#connection = undefined
    }
  }

  #open(openStream: () => Duplex): Connection {
    this.#number += 1
    const number = this.#number
    const { link, onPublish, postponesAck } = this.#options
    return new Connection(openStream, {
      ...this.#login.credentials,
      clientId: link.clientId,
      protocol: this.#login.protocol,
      keepaliveMs: link.keepaliveMs,
      connectTimeoutMs: link.connectTimeoutMs,
      willTopic: link.stateTopic,
      onPublish: (packet) => onPublish(packet, number),
      postponesAck,
    })
  }
}
