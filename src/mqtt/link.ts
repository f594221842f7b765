/** The bridge's link to a broker: publishes retained messages, sends events and answers, and receives commands. */
import type { IPublishPacket } from 'mqtt'
import { within } from '../base/clock.ts'
import { CLOSED_BY_US, type Connection } from './connection.ts'
import { ConnectionLoop, type ConnectionLoopOptions } from './connection-loop.ts'
import type { Failure } from './failure.ts'
import { decodeMessage, type EchoFilter, echoFilter, InboundQueue } from './inbound.ts'
import { Journal } from './journal.ts'
import { topicFault, topicMatcher } from './names.ts'
import { Outbox } from './outbox.ts'
import type { ReadBack } from './readback.ts'
import { type Order, type PayloadSource, Retained } from './retained.ts'
import { Sender } from './sender.ts'
import { reread, resubscribe, setUpSession } from './session-setup.ts'
import { SuspendDetector } from './suspend-detector.ts'
import type { LinkHandlers, LinkOptions, LinkStatus, Message, Redact, SendOptions } from './types.ts'

/** The link is busy while more messages than this are waiting. */
const BUSY_FROM = 1000
const UNPROVEN = 'after a suspension, new messages cannot be distinguished from old ones'

type LinkParts = Pick<ConnectionLoopOptions, 'clock' | 'log' | 'random'>

export class MqttLink implements AsyncDisposable {
  readonly #options: LinkOptions
  readonly #redact: Redact
  readonly #parts: LinkParts
  readonly #retained: Retained
  readonly #events: Outbox
  readonly #answers: Outbox
  readonly #sender: Sender
  readonly #echoes: EchoFilter
  readonly #inboundQueue: InboundQueue
  readonly #journal: Journal
  readonly #loop: ConnectionLoop
  readonly #suspendDetector: SuspendDetector
  readonly #isCommand: (topic: string) => boolean
  readonly #isTransient: (topic: string) => boolean
  #handlers: LinkHandlers | undefined
  /** Set while connected: from CONNACK until the connection is lost. */
  #connection: Connection | undefined
  /** Set while the session of a new connection is being set up. */
  #firstRead: ReadBack | undefined
  /** Set during a later read-back. */
  #reread: ReadBack | undefined
  #closing: Promise<void> | undefined
  #probe: LinkStatus['probe'] = 'unknown'
  #deniedFilters: readonly string[] = []
  #lost = 0

  constructor(options: LinkOptions, parts: LinkParts) {
    const { clock, log } = parts
    const order: Order = { next: 0 }
    const journal = new Journal(clock, log)
    const { redact = (payload) => payload } = options
    this.#options = options
    this.#redact = redact
    this.#parts = parts
    this.#journal = journal
    this.#isCommand = topicMatcher(options.subscriptions)
    this.#retained = new Retained(order, options.delaysOnline, redact, options.clearIfTooLarge, this.#isCommand)
    this.#events = new Outbox(order, false)
    this.#answers = new Outbox(order, true)
    const deliver = (message: Message) => {
      try {
        this.#handlers?.onMessage?.(message)
      } catch (error) {
        this.#failed('onMessage', error)
      }
    }
    this.#inboundQueue = new InboundQueue(this.#answers, deliver, () => this.#connection?.acknowledge())
    const { watchedFilters = [], transientFilters = [] } = options
    this.#isTransient = topicMatcher(transientFilters)
    const isWatched = topicMatcher([...watchedFilters, ...transientFilters])
    this.#echoes = echoFilter(clock, this.#retained, this.#isCommand, isWatched)
    this.#sender = new Sender({
      ...options,
      retained: this.#retained,
      events: this.#events,
      answers: this.#answers,
      echoes: this.#echoes,
      clock,
      journal,
      onTrial: (task, signal) => this.#loop.aside(task, signal),
      onAnswer: () => this.#inboundQueue.resume(),
    })
    this.#suspendDetector = new SuspendDetector(clock, () => void this.#readAgain([]))
    this.#loop = new ConnectionLoop({
      ...parts,
      link: options,
      journal,
      onState: () => this.#statusChanged(),
      onAccepted: (connection) => this.#setUp(connection),
      onPublish: (packet) => this.#received(packet),
      postponesAck: () => this.#inboundQueue.isFull,
      onLost: (failure) => this.#forget(failure),
      isBusy: () => {
        const { queued, unacknowledged } = this.status()
        return queued > 0 || unacknowledged > 0 || (this.#handlers?.isBusy?.() ?? false)
      },
      onStartOver: () => this.#guard('onStartOver', () => this.#handlers?.onStartOver?.()),
    })
  }

  /** Connects, and reconnects after each loss until `close`. A second call does nothing. */
  start(handlers: LinkHandlers = {}): void {
    if (this.#handlers !== undefined || this.#loop.stopped) return
    this.#handlers = handlers
    void this.#loop.run()
  }

  /**
   * Sets the payload that the broker should retain; `null` for none. Sends only the newest payload, and only if the
   * broker lacks it.
   * @param source returns the payload again if it must be resent, so that the link need not keep a copy
   */
  hold(topic: string, payload: string | null, source?: PayloadSource): void {
    // An empty payload makes a broker delete the retained message.
    const wanted = payload === null || payload === '' ? null : this.#redact(payload)
    if (this.#retained.hold(topic, wanted, source)) this.#sender.pump()
    this.#handlers?.observer?.held(topic, wanted)
  }

  /**
   * Like `hold`, for a payload that another connection of this process is about to publish. Sends the payload only if
   * the broker turns out to lack it. Call the returned function when the broker has the payload.
   */
  expect(topic: string, payload: string | null): () => void {
    return this.#retained.expect(topic, payload)
  }

  /** Resends held payloads, even if the broker has them. `topics` may include the state topic. */
  refresh(topics: Iterable<string>): void {
    for (const topic of topics) {
      if (topic === this.#options.stateTopic) this.#sender.repeatState()
      else this.#retained.refresh(topic)
    }
    this.#sender.pump()
  }

  /** Stops holding topics that another client has taken over. Discards queued payloads, but clears nothing. */
  release(isOthers: (topic: string) => boolean): void {
    this.#retained.release(isOthers)
    this.#sender.pump()
    this.#handlers?.observer?.released(isOthers)
  }

  /** Sets whether retained topics, including the state topic, are published; default: `true`. */
  setWriting(writing: boolean): void {
    this.#sender.setWriting(writing)
  }

  /** Reads the retained messages on `transientFilters` again. MQTT 5 subscriptions show such messages immediately. */
  readTransient(): void {
    if (this.#connection?.protocol === '5') return
    const { transientFilters = [], probeTopic } = this.#options
    void this.#readAgain(transientFilters.filter((filter) => filter !== probeTopic))
  }

  /** Reconnects to read back the broker's messages. Does nothing while disconnected. */
  startOver(): void {
    this.#loop.startOver()
  }

  /** Sends an event or answer at least once. While disconnected, queues at most 1,000 of each, for at most a minute. */
  send(topic: string, payload: string, options?: SendOptions): void {
    const fault = topicFault(topic)
    if (fault !== undefined) {
      this.#journal.notPublished('message', topic, 'invalid', fault)
      return
    }
    const outbox = options?.isAnswer ? this.#answers : this.#events
    const before = outbox.dropped
    const redacted = this.#redact(payload)
    outbox.push(topic, redacted, options, this.#parts.clock.elapsed())
    if (outbox.dropped > before) this.#journal.dropped(options?.isAnswer ? 'answers' : 'events')
    this.#sender.pump()
    if (!options?.isAnswer) this.#handlers?.observer?.sent(topic, redacted)
  }

  /** Records that a command or an event was dropped that did not wait in the link. */
  dropped(kind: 'commands' | 'events'): void {
    if (kind === 'commands') this.#inboundQueue.dropped += 1
    else this.#events.dropped += 1
    this.#journal.dropped(kind)
  }

  /**
   * Clears messages that were read back, are not held, and for which `owned` returns `true`. `owned` receives '' as the
   * payload if too much was read back to keep the payloads. Returns the number of cleared messages.
   */
  sweep(owned: (topic: string, payload: string) => boolean): number {
    const count = this.#retained.sweep(owned)
    if (count > 0) this.#sender.pump()
    return count
  }

  /** Returns whether a message's connection is still up, and no long suspension followed the message's arrival. */
  isCurrent({ connection, receivedAt }: Message): boolean {
    const isUp = connection === this.#loop.number && this.#loop.connection?.isDown === false
    return isUp && !this.#suspendDetector.outdates(receivedAt)
  }

  /** Whether the broker is connected, but many messages have not been sent yet; `false` on standby. */
  get isBusy(): boolean {
    return this.#connection?.isDown === false && this.#sender.isWriting && this.#queued > BUSY_FROM
  }

  get #queued(): number {
    return this.#retained.waiting + this.#events.waiting + this.#answers.waiting
  }

  status(): LinkStatus {
    const { state, reason } = this.#loop
    return {
      state,
      protocol: this.#connection?.isDown === false ? this.#connection.protocol : null,
      ...(reason === undefined ? {} : { reason }),
      deniedFilters: this.#deniedFilters,
      deniedTopics: this.#retained.blocked + Number(this.#sender.stateRefused),
      probe: this.#probe,
      queued: this.#queued,
      unacknowledged: this.#sender.unacknowledged,
      reconnects: this.#lost,
      publishes: this.#sender.publishes,
      bytes: this.#sender.bytes,
      dropped: this.#events.dropped + this.#answers.dropped + this.#inboundQueue.dropped,
    }
  }

  /**
   * Publishes the waiting answers, then `offline`, then all other queued messages, and disconnects. The deadline is
   * short (default: 3,000 ms) because a supervisor kills the process after ten seconds. Safe to call twice.
   */
  close({ deadlineMs = 3000 }: { readonly deadlineMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(deadlineMs)
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(deadlineMs: number): Promise<void> {
    this.#loop.stop()
    const { connection } = this.#loop
    if (connection?.isAccepted) {
      const finished = this.#sender.finish(connection).then(() => connection.end())
      await within(this.#parts.clock, deadlineMs, finished, connection.ended)
    }
    connection?.drop(CLOSED_BY_US)
    this.#suspendDetector.stop()
    this.#loop.setState('stopped', undefined)
  }

  async #setUp(connection: Connection): Promise<void> {
    this.#connection = connection
    this.#guard('onAccepted', () => this.#handlers?.onAccepted?.())
    this.#echoes.connected(connection.protocol)
    for (const outbox of [this.#events, this.#answers]) outbox.connected = true
    this.#suspendDetector.start()
    /** The newest message of each topic on which other clients publish during the read-back. */
    const live = new Map<string, string>()
    const { readBack, done } = setUpSession(connection, {
      link: this.#options,
      clock: this.#parts.clock,
      journal: this.#journal,
      deniedBefore: this.#probe === 'denied',
      onFound: (topic, text) => {
        if (topic !== this.#options.stateTopic) this.#retained.found(topic, text)
      },
      onLive: (topic, text) => {
        if (!this.#isTransient(topic)) live.set(topic, text)
        // Another bridge has become active since the retained state was read.
        if (topic === this.#options.stateTopic && text === 'online') this.#handlers?.onReadBack?.(topic, text)
      },
      additionalFilters: (topic, text) => this.#handlers?.onReadBack?.(topic, text) ?? [],
    })
    // This runs in the same turn of the event loop as the subscriptions, so no message has arrived yet.
    this.#firstRead = readBack
    const { deniedFilters, probe, complete } = await done
    if (connection.isDown || this.#loop.stopped) return
    this.#firstRead = undefined
    this.#deniedFilters = deniedFilters
    this.#probe = probe
    this.#loop.ready(connection.protocol)
    this.#guard('onConnected', () => this.#handlers?.onConnected?.(this.status()))
    this.#retained.settle(topicMatcher(complete))
    this.#sender.attach(connection)
    for (const [topic, text] of live) this.#live(topic, text)
    void resubscribe(connection, deniedFilters, this.#parts, (filter) => this.#granted(filter))
    if (this.#suspendDetector.isUncertain) void this.#readAgain([])
  }

  #granted(filter: string): void {
    this.#deniedFilters = this.#deniedFilters.filter((one) => one !== filter)
    this.#journal.granted(filter)
    this.#statusChanged()
  }

  /** Reads the retained messages of the filters again. Messages that arrive after that were sent after the call. */
  async #readAgain(filters: readonly string[]): Promise<void> {
    const connection = this.#connection
    // While the session is being set up, do nothing: `#setUp` reads all messages, and calls this method if necessary.
    if (connection === undefined || connection.isDown || this.#firstRead !== undefined) return
    const current = reread(connection, filters, this.#options, {
      clock: this.#parts.clock,
      publish: (marker, done) => this.send(this.#options.probeTopic, marker, { ifRefused: () => void done(1) }),
    })
    this.#reread = current
    const { probe } = await current.run()
    // A later read-back or another connection may have replaced this read-back.
    if (this.#reread !== current) return
    this.#reread = undefined
    if (probe === 'ok') this.#suspendDetector.ended()
    else if (this.#suspendDetector.isUncertain) connection.drop({ code: 'timeout', detail: UNPROVEN })
  }

  /** Resets the state after the loss of a connection. Returns whether a payload's size probably caused the loss. */
  #forget(failure: Failure): boolean {
    for (const outbox of [this.#events, this.#answers]) outbox.connected = false
    this.#connection = undefined
    this.#lost += 1
    this.#firstRead = undefined
    const explained = this.#sender.detach(failure)
    this.#retained.forget()
    this.#suspendDetector.stop()
    this.#reread = undefined
    return explained
  }

  #received(packet: IPublishPacket): void {
    const { topic, payload, retain } = packet
    const isTransient = this.#isTransient(topic)
    if (this.#isCommand(topic) && !(isTransient && retain)) {
      const receivedAt = this.#suspendDetector.arrivedAt()
      if (payload.length === 0 && this.#echoes.isClearingEcho(topic, receivedAt)) return
      const message = decodeMessage(packet, this.#loop.number, receivedAt)
      const isUrgent = topic === this.#options.urgentTopic
      if (!this.#inboundQueue.take(message, isUrgent)) this.#journal.dropped('commands')
    } else if (this.#firstRead !== undefined) this.#firstRead.received(packet)
    else if (topic === this.#options.probeTopic && !retain) this.#reread?.received(packet)
    else if (retain || !isTransient) this.#live(topic, payload.toString())
  }

  #live(topic: string, text: string): void {
    const isState = topic === this.#options.stateTopic
    if (isState ? text === this.#sender.state : !this.#echoes.foreign(topic, text)) return
    this.#guard('onTouched', () => this.#handlers?.onTouched?.(topic, text))
  }

  #statusChanged(): void {
    this.#guard('onStatus', () => this.#handlers?.onStatus?.(this.status()))
  }

  #guard(name: string, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#failed(name, error)
    }
  }

  /** Logs an error in a handler, because such an error must not end the connection or the loop. */
  #failed(name: string, error: unknown): void {
    this.#parts.log.error({ err: error }, `${name} of the MQTT link failed`)
  }
}
