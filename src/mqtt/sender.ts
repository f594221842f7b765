/** Sends what waits in the retained set and the outbox: in order, a limited number at a time, each acknowledged. */
import type { IClientPublishOptions } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { AckTimer } from './ack-timer.ts'
import { type Connection, PACKET_TOO_LARGE } from './connection.ts'
import type { Failure } from './failure.ts'
import type { Journal } from './journal.ts'
import { topicFault } from './names.ts'
import type { Outbox, Outgoing } from './outbox.ts'
import { GIVE_UP_AFTER, isBlameless, PoisonMessages } from './poison-messages.ts'
import type { Block, Entry, Retained } from './retained.ts'
import { SizeLimit } from './size-limit.ts'
import type { Redact } from './types.ts'

/** The part of a connection on which what may end it is tried. */
export type TrialWire = Pick<Connection, 'publish'>

/** The part of a connection that sending needs. */
export type Wire = Pick<Connection, 'isDown' | 'receiveMaximum' | 'maximumPacketSize' | 'publish' | 'drop'>

/** The state topic's `online` or `offline`. */
interface State {
  readonly kind: 'state'
  readonly topic: string
  readonly payload: 'online' | 'offline'
  losses: number
  sentAt: number
  sentBytes: number
}

type Item = Entry | Outgoing | State

export interface SenderOptions {
  readonly retained: Retained
  readonly events: Outbox
  readonly answers: Outbox
  readonly clock: Clock
  readonly journal: Journal
  /** Applied to what replaces a message; default: it is sent as it is. */
  readonly redact?: Redact
  readonly stateTopic: string
  /** Publishes without acknowledgement at a time, at most. */
  readonly window: number
  readonly ackTimeoutMs: number
  /** The largest packet that the broker is known to take, in bytes; default: as it says. */
  readonly maximumPacketSize?: number | undefined
  /** Whether a topic may be published at this moment; default: all may. */
  readonly mayPublish?: ((topic: string) => boolean) | undefined
  /**
   * Runs `task` on another connection to the broker, without a will, so that its loss stays unseen. Resolves to what ended
   * it before the task, or why there is none.
   */
  readonly onTrial: (task: (wire: TrialWire) => Promise<void>, signal: AbortSignal) => Promise<Failure | undefined>
  /** Called before each zero-length retained publish. */
  readonly onClear: (topic: string) => void
  /** Called before each event or answer. */
  readonly onMessage: (topic: string, payload: string) => void
  /** Called after each acknowledgement: fewer may wait. */
  readonly onAcked: () => void
}

/** A quarantined topic is tried again after this time; it doubles with each further loss. */
const RETRY_QUARANTINED_MS = 5_000
const MOST_DOUBLINGS = 10
const TOO_LARGE = 'it is larger than the broker takes'

const RETAINED: IClientPublishOptions = { qos: 1, retain: true }

export class Sender {
  readonly #options: SenderOptions
  /** Oldest first. */
  readonly #unacknowledged = new Set<Item>()
  readonly #ackTimer: AckTimer
  readonly #losses: PoisonMessages<Item>
  readonly #sizes: SizeLimit
  /** Taken, and kept back until they are tried alone. */
  readonly #suspects = new Set<Item>()
  #trial: AbortController | undefined
  /** The suspect that is on its way on a connection of its own. */
  #tried: { readonly item: Item; readonly done: (accepted: boolean) => void } | undefined
  /** Whether no connection of its own can be had for a trial: suspects are tried on this one. */
  #triesHere = false
  /** The suspect that is on its way on this connection, and nothing beside it. */
  #alone: Item | undefined
  #connection: Wire | undefined
  #window = 0
  /** What was last sent to the state topic on this connection. */
  #state: State['payload'] | undefined
  /** Whether an answer was sent last while something else waited, too. */
  #answeredLast = false
  #closing = false
  /** Whether retained topics are written. */
  #writing = true
  #publishes = 0
  #bytes = 0
  #cancelRetry: (() => void) | undefined
  #cancelRelearn: (() => void) | undefined
  #onIdle: (() => void) | undefined

  constructor(options: SenderOptions) {
    const { clock, ackTimeoutMs } = options
    this.#options = options
    this.#sizes = new SizeLimit(options.maximumPacketSize ?? Number.POSITIVE_INFINITY, clock)
    this.#losses = new PoisonMessages(clock, this.#sizes)
    this.#ackTimer = new AckTimer(
      clock,
      ackTimeoutMs,
      () => this.#unacknowledged.values().next().value?.sentAt,
      () => {
        const detail = `no acknowledgement of a publish within ${ackTimeoutMs} ms`
        this.#connection?.drop({ code: 'timeout', detail })
      },
    )
  }

  get unacknowledged(): number {
    return this.#unacknowledged.size + this.#suspects.size
  }

  get publishes(): number {
    return this.#publishes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** What was last published to the state topic on this connection. */
  get state(): string | undefined {
    return this.#state
  }

  /** Starts to send. `online` follows when everything that the retained set awaits is done. */
  attach(connection: Wire): void {
    this.#connection = connection
    this.#window = Math.min(this.#options.window, connection.receiveMaximum)
    this.#sizes.connected(connection.maximumPacketSize)
    this.#state = undefined
    this.#triesHere = false
    const { events, answers, clock, journal } = this.#options
    if (events.expire(clock.elapsed()) > 0) journal.dropped('events')
    if (answers.expire(clock.elapsed()) > 0) journal.dropped('answers')
    this.#scheduleRetries()
    this.pump()
  }

  /** Publishes the answers that wait, `offline`, and then everything else. Resolves when everything is acknowledged. */
  finish(connection: Wire): Promise<void> {
    this.#closing = true
    this.#trial?.abort()
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#connection === undefined) this.attach(connection)
      else this.pump()
      this.#checkIdle()
    })
  }

  /** Publishes `online` again at the next `pump`, if it was published before. */
  repeatState(): void {
    if (!this.#closing) this.#state = undefined
  }

  setWriting(writing: boolean): void {
    this.#writing = writing
    if (writing) this.pump()
  }

  /** The connection is lost: unacknowledged items wait again. Returns whether it has shown a size that ended it. */
  detach(failure: Failure): boolean {
    this.#connection = undefined
    this.#ackTimer.stop()
    this.#cancelRetry?.()
    this.#cancelRelearn?.()
    this.#trial?.abort()
    this.#trial = undefined
    this.#tried = undefined
    const alone = this.#alone
    const explained =
      alone === undefined
        ? this.#losses.connectionLost(failure, this.#unacknowledged)
        : this.#aloneLost(failure, alone) === 'too_large'
    this.#alone = undefined
    this.#restore([...this.#unacknowledged, ...this.#suspects], (entry) => this.#options.retained.lost(entry))
    this.#unacknowledged.clear()
    this.#suspects.clear()
    return explained
  }

  /** These are not on their way any more. */
  #restore(items: readonly Item[], putBack: (entry: Entry) => void): void {
    for (const item of items) if (item.kind === 'retained') putBack(item)
    const messages = items.filter((item) => item.kind === 'message')
    this.#options.events.restore(messages.filter(({ isAnswer }) => !isAnswer))
    this.#options.answers.restore(messages.filter(({ isAnswer }) => isAnswer))
  }

  #aloneLost(failure: Failure, item: Item): Block | undefined {
    const block = this.#losses.aloneLost(failure, item)
    if (block === 'too_large') {
      this.#refuse(item, block, `the broker ends the connection when it gets it, with ${item.sentBytes} bytes`)
    } else if (block !== undefined) {
      this.#refuse(item, block, `${item.losses} connections in a row were lost as it was being published`)
    }
    if (this.#connection !== undefined) this.#scheduleRetries()
    return block
  }

  #scheduleRetries(): void {
    this.#retryQuarantined()
    this.#retryTooLarge()
  }

  /** Tries the quarantined topics that are due after `ageMs` again in `ms`, and then later. */
  #retryQuarantined(ms = RETRY_QUARANTINED_MS, ageMs = RETRY_QUARANTINED_MS): void {
    const { clock, retained } = this.#options
    this.#cancelRetry?.()
    if (!retained.hasQuarantined) return
    const afterLosses = (losses: number) => RETRY_QUARANTINED_MS * 2 ** Math.min(MOST_DOUBLINGS, losses - GIVE_UP_AFTER)
    this.#cancelRetry = clock.after(ms, () => {
      retained.retryQuarantined(({ losses }) => afterLosses(losses) <= ageMs)
      this.pump()
      this.#retryQuarantined(ageMs, Math.min(2 * ageMs, afterLosses(Number.POSITIVE_INFINITY)))
    })
  }

  /** When a size that ended connections is due again, so is what was held back for it. */
  #retryTooLarge(): void {
    const { relearnInMs } = this.#sizes
    this.#cancelRelearn?.()
    if (relearnInMs === undefined) return
    this.#cancelRelearn = this.#options.clock.after(relearnInMs, () => {
      this.#sizes.relearn()
      this.#options.retained.retryTooLarge()
      this.pump()
    })
  }

  /** Sends as much as the window allows. Call it whenever something new waits. */
  pump(): void {
    const connection = this.#connection
    if (connection === undefined || connection.isDown) return
    while (this.#alone === undefined && this.#unacknowledged.size < this.#window) {
      const item = this.#next()
      if (item === undefined) {
        if (this.#try(connection)) continue
        return
      }
      if (!this.#may(item)) {
        if (item.kind !== 'message') return
        this.#options.events.take()
        continue
      }
      this.#send(connection, item)
    }
  }

  #may(item: Item): boolean {
    const isFree = item.kind === 'state' || (item.kind === 'message' && item.isAnswer)
    return isFree || (this.#options.mayPublish?.(item.topic) ?? true)
  }

  #next(): Item | undefined {
    const { retained, events, answers, stateTopic } = this.#options
    const wanted = this.#closing ? 'offline' : retained.awaiting === 0 ? 'online' : undefined
    const state = this.#writing ? wanted : undefined
    const answer = answers.peek()
    if (state !== undefined && state !== this.#state) {
      // At the end the answers come first. Where the broker is too slow for them, its will says `offline`.
      if (this.#closing && answer !== undefined) return answer
      return { kind: 'state', topic: stateTopic, payload: state, losses: 0, sentAt: 0, sentBytes: 0 }
    }
    const other = earlier(this.#writing ? retained.peek() : undefined, events.peek())
    if (answer === undefined || other === undefined) return answer ?? other
    // They take turns: many answers do not keep events waiting, nor many states the answers.
    return this.#answeredLast ? other : answer
  }

  #send(wire: TrialWire, item: Item): void {
    this.#answeredLast = item.kind === 'message' && item.isAnswer
    if (item.kind === 'retained') this.#sendEntry(wire, item)
    else if (item.kind === 'message') this.#sendMessage(wire, item)
    else {
      this.#state = item.payload
      item.sentBytes = item.payload.length
      this.#publish(wire, item, item.payload, RETAINED)
    }
  }

  #sendMessage(wire: TrialWire, item: Outgoing): void {
    const { events, answers } = this.#options
    if (!this.#suspects.has(item)) (item.isAnswer ? answers : events).take()
    item.sentBytes = item.payloadBytes
    if (!this.#fits(item)) this.#refuse(item, 'too_large', TOO_LARGE)
    else if (this.#mayEndConnection(wire, item)) this.#suspects.add(item)
    else {
      this.#options.onMessage(item.topic, item.payload)
      this.#publish(wire, item, item.payload, item.options)
    }
  }

  #sendEntry(wire: TrialWire, item: Entry): void {
    const payload = this.#options.retained.take(item) ?? ''
    item.sentBytes = Buffer.byteLength(payload)
    const fault = item.sentAt === 0 ? topicFault(item.topic) : undefined
    if (fault !== undefined) this.#refuse(item, 'invalid', fault)
    else if (!this.#fits(item)) this.#refuse(item, 'too_large', TOO_LARGE)
    else if (this.#mayEndConnection(wire, item)) this.#suspects.add(item)
    else {
      if (payload === '') this.#options.onClear(item.topic)
      this.#publish(wire, item, payload, RETAINED)
    }
  }

  #fits(item: Item): boolean {
    return this.#sizes.allows(item.sentBytes, () =>
      item.kind === 'message' ? item.bytes - item.payloadBytes : Buffer.byteLength(item.topic),
    )
  }

  #mayEndConnection(wire: TrialWire, item: Item): boolean {
    return wire === this.#connection && item !== this.#alone && this.#losses.isSuspect(item)
  }

  #publish(wire: TrialWire, item: Item, payload: string, options: IClientPublishOptions): void {
    this.#publishes += 1
    this.#bytes += item.sentBytes
    item.sentAt = this.#options.clock.elapsed()
    if (wire === this.#connection) {
      this.#suspects.delete(item)
      this.#unacknowledged.add(item)
      this.#ackTimer.sent()
    }
    wire.publish(item.topic, payload, options, (reason) => this.#acked(item, reason))
  }

  /** Nothing else waits: tries what is kept back, the smallest first. Returns whether something was refused. */
  #try(connection: Wire): boolean {
    if (this.#trial !== undefined || this.#closing) return false
    const before = this.#suspects.size
    const item = this.#smallest()
    const isWorthIt = ({ sentBytes }: Item) => !this.#triesHere || this.#sizes.isWorthALoss(sentBytes)
    for (const one of this.#suspects) if (!this.#fits(one) || !isWorthIt(one)) this.#refuse(one, 'too_large', TOO_LARGE)
    if (this.#suspects.size === 0) this.#sizes.settled()
    if (this.#suspects.size < before) return true
    if (item === undefined) return false
    if (!this.#triesHere) this.#startTrial()
    else if (this.#unacknowledged.size === 0) {
      this.#alone = item
      this.#send(connection, item)
    }
    return false
  }

  #startTrial(): void {
    const trial = new AbortController()
    this.#trial = trial
    let isOpen = false
    const task = (wire: TrialWire) => {
      isOpen = true
      return this.#tryAll(wire)
    }
    void this.#options.onTrial(task, trial.signal).then((failure) => {
      if (!trial.signal.aborted) this.#trialEnded(failure, isOpen)
    })
  }

  #smallest(): Item | undefined {
    let smallest: Item | undefined
    for (const item of this.#suspects) {
      if (item.kind === 'retained' && item.released) this.#suspects.delete(item)
      else if (item.kind === 'message' || this.#writing) {
        if (smallest === undefined || item.sentBytes < smallest.sentBytes) smallest = item
      }
    }
    return smallest !== undefined && this.#may(smallest) ? smallest : undefined
  }

  async #tryAll(wire: TrialWire): Promise<void> {
    for (let item = this.#smallest(); item !== undefined; item = this.#smallest()) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      this.#tried = { item, done: resolve }
      this.#send(wire, item)
      // A refusal may end this connection, and that would count against the next one.
      if (!(await promise)) return
    }
  }

  #trialEnded(failure: Failure | undefined, wasOpen: boolean): void {
    const item = this.#tried?.item
    this.#trial = undefined
    this.#tried = undefined
    if (failure !== undefined) {
      if (!wasOpen || isBlameless(failure)) this.#triesHere = true
      else if (item !== undefined) this.#aloneLost(failure, item)
    }
    this.pump()
  }

  /** An item is acknowledged, refused or given up. */
  #settle(item: Item, accepted: boolean): void {
    this.#unacknowledged.delete(item)
    this.#suspects.delete(item)
    if (this.#alone === item) this.#alone = undefined
    if (this.#tried?.item !== item) return
    this.#tried.done(accepted)
    this.#tried = undefined
  }

  #acked(item: Item, reason: number): void {
    this.#settle(item, reason === 0)
    if (reason !== 0) {
      const isTooLarge = reason === PACKET_TOO_LARGE
      this.#losses.refused(item, isTooLarge)
      this.#refuse(item, isTooLarge ? 'too_large' : 'denied', `the broker refuses it with reason ${reason}`)
      this.#retryTooLarge()
    } else {
      this.#sizes.acknowledged(item.sentBytes)
      if (item.kind === 'retained') this.#options.retained.acked(item)
      else item.losses = 0
      if (this.#suspects.size > 0) this.#releaseSuspects()
    }
    this.pump()
    this.#options.onAcked()
    this.#checkIdle()
  }

  /** What is no suspect any more, as a larger one was acknowledged, need not be tried alone. */
  #releaseSuspects(): void {
    const free = [...this.#suspects].filter((item) => !this.#losses.isSuspect(item) && item !== this.#tried?.item)
    for (const item of free) this.#suspects.delete(item)
    this.#restore(free, (entry) => this.#options.retained.putBack(entry))
  }

  /** Stops sending an item: a retained topic is blocked, a message dropped or replaced. */
  #refuse(item: Item, block: Block, detail: string): void {
    this.#settle(item, false)
    const isNew = item.kind !== 'retained' || this.#options.retained.refused(item, block)
    if (isNew) this.#options.journal.notPublished(item.topic, block, detail)
    if (item.kind === 'message') this.#replace(item, block)
  }

  #replace({ topic, isAnswer, ifRefused }: Outgoing, why: Block): void {
    const { events, answers, clock, redact = (payload) => payload } = this.#options
    const outbox = isAnswer ? answers : events
    const replacement = why === 'too_large' || why === 'denied' ? ifRefused?.(why) : undefined
    if (replacement === undefined) outbox.lost()
    else {
      const options = { ...replacement.options, isAnswer }
      outbox.push(replacement.topic ?? topic, redact(replacement.payload), options, clock.elapsed())
    }
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || this.#unacknowledged.size > 0) return
    this.#onIdle()
    this.#onIdle = undefined
  }
}

function earlier(entry: Entry | undefined, message: Outgoing | undefined): Entry | Outgoing | undefined {
  if (entry === undefined || message === undefined) return entry ?? message
  return entry.seq < message.seq ? entry : message
}
