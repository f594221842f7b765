/** A bridge's end of the line: keeps a broker connected and holding what is wanted, sends events, brings commands. */
import type { Duplex } from 'node:stream'
import type { IPublishPacket } from 'mqtt'
import type { Logger } from 'pino'
import { type Clock, sleep } from '../base/clock.ts'
import { CLOSED_BY_US, Connection } from './connection.ts'
import { errorFailure, type Failure } from './failure.ts'
import { Greeting } from './greeting.ts'
import { Inbox } from './inbox.ts'
import { Journal } from './journal.ts'
import { Login } from './login.ts'
import { topicFault, topicMatcher } from './names.ts'
import { Outbox } from './outbox.ts'
import { Pacing } from './pacing.ts'
import { type Order, Retained } from './retained.ts'
import { Sender } from './sender.ts'
import { streamOpener } from './stream.ts'
import type { FailureCode, LinkHandlers, LinkOptions, LinkStatus, Message, SendOptions } from './types.ts'

export interface LinkDependencies {
  readonly clock: Clock
  readonly log: Logger
  /** Returns a number in [0, 1); default `Math.random`. */
  readonly random?: () => number
}

/** So long a broker may take to hang up when it is asked to. */
const GOODBYE_MS = 1_000

/** Under MQTT 5 the broker withholds larger messages. */
const MAXIMUM_PACKET_SIZE = 1024 * 1024

export class MqttLink {
  readonly #options: LinkOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #retained: Retained
  readonly #outbox: Outbox
  readonly #sender: Sender
  readonly #inbox: Inbox
  readonly #journal: Journal
  readonly #login: Login
  readonly #pacing: Pacing
  readonly #stop = new AbortController()
  #handlers: LinkHandlers = {}
  #connection: Connection | undefined
  #greeting: Greeting | undefined
  #running: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #state: LinkStatus['state'] = 'stopped'
  #reason: FailureCode | undefined
  #probe: LinkStatus['probe'] = 'unknown'
  #deniedFilters: readonly string[] = []
  #startingOver = false
  #connections = 0
  #lost = 0

  /** Opens nothing; `start` does. */
  constructor(options: LinkOptions, { clock, log, random = Math.random }: LinkDependencies) {
    const order: Order = { next: 0 }
    this.#options = options
    this.#clock = clock
    this.#log = log
    this.#retained = new Retained(order)
    this.#outbox = new Outbox(order)
    this.#inbox = new Inbox(options.subscriptions, clock)
    this.#journal = new Journal(clock, log)
    this.#login = new Login(options, log)
    this.#pacing = new Pacing(random)
    this.#sender = new Sender({
      retained: this.#retained,
      outbox: this.#outbox,
      clock,
      log,
      stateTopic: options.stateTopic,
      window: options.window ?? 32,
      ackTimeoutMs: options.ackTimeoutMs ?? 30_000,
      onClear: (topic) => {
        if (this.#connection?.protocol === '3.1.1') this.#inbox.expectEcho(topic)
      },
    })
  }

  /** Connects, and keeps connecting until `close`. A second call does nothing. */
  start(handlers: LinkHandlers = {}): void {
    if (this.#stop.signal.aborted || this.#running !== undefined) return
    this.#handlers = handlers
    this.#running = this.#run()
  }

  /**
   * The payload that the broker should hold under `topic`; null: none. The newest counts, whatever was wanted before,
   * and nothing is sent that the broker has already.
   */
  hold(topic: string, payload: string | null): void {
    // To a broker a retained message without payload is none.
    if (this.#retained.hold(topic, payload === '' ? null : payload)) this.#sender.pump()
  }

  /** Sends again what is held on these topics, for a reader that may have lost it; the state topic may be among them. */
  refresh(topics: Iterable<string>): void {
    for (const topic of topics) {
      if (topic === this.#options.stateTopic) this.#sender.repeatState()
      else this.#retained.refresh(topic)
    }
    this.#sender.pump()
  }

  /** Connects anew, and reads back what the broker holds: for when somebody else may have changed it. */
  startOver(): void {
    const connection = this.#connection
    if (!connection?.isAccepted) return
    this.#startingOver = true
    void connection.end()
    this.#clock.after(GOODBYE_MS, () => connection.drop(CLOSED_BY_US))
  }

  /** Sends an event or an answer, at least once, while it is younger than a minute; under MQTT 3.1.1 without its options. */
  send(topic: string, payload: string, options?: SendOptions): void {
    const fault = topicFault(topic)
    if (fault !== undefined) {
      this.#log.warn({ topic, reason: 'invalid' }, `not published to ${JSON.stringify(topic)}: ${fault}`)
      return
    }
    const before = this.#outbox.dropped
    this.#outbox.push(topic, payload, options, this.#clock.elapsed())
    if (this.#outbox.dropped > before) {
      this.#journal.warnOnce('outbox', 'too many messages wait for the MQTT broker: the oldest are dropped')
    }
    this.#sender.pump()
  }

  /** Topics under `heldFilters` that the broker holds and nobody wants; none before `onConnected`, nor while disconnected. */
  held(): Iterable<string> {
    return this.#retained.strangers()
  }

  /** Clears those of `held()` that the caller claims; returns how many. The payload is '' where the broker held too much to keep. */
  sweep(owned: (topic: string, payload: string) => boolean): number {
    const count = this.#retained.sweep(owned)
    if (count > 0) this.#sender.pump()
    return count
  }

  /** The number of the present or latest connection; 0 before the first. */
  get connection(): number {
    return this.#connections
  }

  /** Whether a message's connection is still up: what an earlier one brought is stale. */
  isCurrent({ connection: number }: Message): boolean {
    const connection = this.#connection
    return number === this.#connections && connection?.isAccepted === true && !connection.isDown
  }

  status(): LinkStatus {
    const connection = this.#connection
    return {
      state: this.#state,
      protocol: connection?.isAccepted && !connection.isDown ? connection.protocol : null,
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
      deniedFilters: this.#deniedFilters,
      deniedTopics: this.#retained.blocked,
      probe: this.#probe,
      queued: this.#retained.waiting + this.#outbox.waiting,
      unacknowledged: this.#sender.unacknowledged,
      reconnects: this.#lost,
      publishes: this.#sender.publishes,
      bytes: this.#sender.bytes,
      dropped: this.#outbox.dropped,
    }
  }

  /**
   * Publishes `offline`, then what still waits, and disconnects; done within `deadlineMs` whatever the broker does.
   * A second call waits for the first.
   */
  close({ deadlineMs }: { readonly deadlineMs: number }): Promise<void> {
    this.#closing ??= this.#close(deadlineMs)
    return this.#closing
  }

  async #close(deadlineMs: number): Promise<void> {
    this.#stop.abort()
    const done = new AbortController()
    const connection = this.#connection
    if (connection?.isAccepted) {
      const farewell = this.#sender.finish(connection).then(() => connection.end())
      await Promise.race([farewell, connection.down, sleep(this.#clock, deadlineMs, done.signal)])
    }
    connection?.drop(CLOSED_BY_US)
    done.abort()
    this.#setState('stopped', undefined)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const { failure, livedMs } = await this.#live()
      if (signal.aborted) return
      if (this.#takeStartingOver() || (await this.#login.retry(failure))) continue
      this.#journal.failed(failure, livedMs)
      const wait = this.#pacing.after(failure, livedMs)
      if (this.#pacing.suspicious) {
        this.#journal.warnOnce(
          'unsteady',
          'the MQTT broker ends every connection soon: does another client use this client id?',
        )
      }
      this.#setState('waiting', failure.code)
      await sleep(this.#clock, wait, signal)
      this.#login.reset()
    }
  }

  #takeStartingOver(): boolean {
    const startingOver = this.#startingOver
    this.#startingOver = false
    return startingOver
  }

  /** One connection from its opening to its end. */
  async #live(): Promise<{ failure: Failure; livedMs?: number }> {
    this.#setState('connecting', this.#reason)
    try {
      const open = await streamOpener(this.#options)
      if (this.#stop.signal.aborted) return { failure: CLOSED_BY_US }
      const connection = this.#open(open)
      this.#connection = connection
      const refusal = await Promise.race([connection.accepted, connection.down])
      if (refusal !== undefined) return { failure: refusal }
      const acceptedAt = this.#clock.elapsed()
      await Promise.race([this.#setUp(connection), connection.down])
      const failure = await connection.down
      this.#forget(failure)
      return { failure, livedMs: this.#clock.elapsed() - acceptedAt }
    } catch (error) {
      return { failure: errorFailure(error instanceof Error ? error : new Error(String(error)), false) }
    } finally {
      this.#connection = undefined
    }
  }

  #open(openStream: () => Duplex): Connection {
    this.#connections += 1
    const number = this.#connections
    const { clientId, keepaliveMs, connectTimeoutMs, stateTopic } = this.#options
    return new Connection(openStream, {
      ...this.#login.credentials,
      clientId,
      protocol: this.#login.protocol,
      keepaliveMs,
      connectTimeoutMs,
      willTopic: stateTopic,
      maximumPacketSize: MAXIMUM_PACKET_SIZE,
      onPublish: (packet) => this.#received(packet, number),
    })
  }

  #forget(failure: Failure): void {
    this.#lost += 1
    this.#greeting = undefined
    this.#sender.detach(failure)
    this.#retained.forget()
    this.#inbox.disconnected()
  }

  /** Commands first, then what the broker holds, then the difference, `online` last. */
  async #setUp(connection: Connection): Promise<void> {
    const greeting = new Greeting(connection, {
      options: this.#options,
      clock: this.#clock,
      journal: this.#journal,
      deniedBefore: this.#probe === 'denied',
      onFound: (topic, text) => this.#retained.found(topic, text),
    })
    this.#greeting = greeting
    const { deniedFilters, probe, known } = await greeting.run()
    if (connection.isDown || this.#stop.signal.aborted) return
    this.#greeting = undefined
    this.#deniedFilters = deniedFilters
    this.#probe = probe
    this.#journal.connected(connection.protocol)
    this.#setState('connected', undefined)
    this.#guard('onConnected', () => this.#handlers.onConnected?.(this.status()))
    this.#retained.settle(topicMatcher(known))
    this.#sender.attach(connection)
  }

  #received(packet: IPublishPacket, connection: number): void {
    if (!this.#inbox.owns(packet.topic)) {
      if (this.#greeting !== undefined) this.#greeting.received(packet)
      else if (!packet.retain) this.#touched(packet)
      return
    }
    const message = this.#inbox.message(packet, connection)
    if (message !== undefined) this.#guard('onMessage', () => this.#handlers.onMessage?.(message))
  }

  #touched({ topic, payload }: IPublishPacket): void {
    this.#guard('onTouched', () => this.#handlers.onTouched?.(topic, payload.toString()))
  }

  #setState(state: LinkStatus['state'], reason: FailureCode | undefined): void {
    if (this.#state === state && this.#reason === reason) return
    this.#state = state
    this.#reason = reason
    this.#guard('onStatus', () => this.#handlers.onStatus?.(this.status()))
  }

  /** A handler's mistake is its own: it must not end the connection, nor the loop. */
  #guard(name: string, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#log.error({ err: error }, `${name} of the MQTT link failed`)
    }
  }
}
