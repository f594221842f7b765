/** Sends retained topics, events and answers in order, and limits the number of unacknowledged publishes. */
import type { IClientPublishOptions } from 'mqtt'
import type { Connection } from './connection.ts'
import type { ConnectionLoopOptions } from './connection-loop.ts'
import type { Failure } from './failure.ts'
import type { EchoFilter } from './inbound.ts'
import { topicFault } from './names.ts'
import type { Outbox } from './outbox.ts'
import { GIVE_UP_AFTER, isBlameless, PoisonMessages, type Refusal, TOO_LARGE } from './poison-messages.ts'
import type { Retained } from './retained.ts'
import { type Item, Sequence } from './sequence.ts'
import type { LinkOptions } from './types.ts'

type TrialWire = Pick<Connection, 'publish'>

export type Wire = Pick<Connection, 'isDown' | 'receiveMaximum' | 'maximumPacketSize' | 'publish' | 'drop'>

export interface SenderOptions
  extends Pick<LinkOptions, 'stateTopic' | 'mayPublish' | 'window' | 'ackTimeoutMs' | 'maximumPacketSize' | 'redact'>,
    Pick<ConnectionLoopOptions, 'clock' | 'journal'> {
  readonly retained: Retained
  readonly events: Outbox
  readonly answers: Outbox
  readonly onAnswer: () => void
  /**
   * Runs `task` on a separate connection without a will, so that other clients do not notice its loss. Resolves to the
   * failure of that connection, if any.
   */
  readonly onTrial: (task: (wire: TrialWire) => Promise<void>, signal: AbortSignal) => Promise<Failure | undefined>
  /** Records publishes whose echo may arrive. */
  readonly echoes: Pick<EchoFilter, 'sending' | 'clearing'>
}

const WINDOW = 32
export const ACK_TIMEOUT_MS = 30_000
/** A quarantined topic is tried again after this time, which doubles with each additional loss. */
const RETRY_QUARANTINED_MS = 5_000
const MAX_DOUBLINGS = 10

const RETAINED: IClientPublishOptions = { qos: 1, retain: true }

export class Sender {
  /** Number of publishes so far, acknowledged or not; all are QoS 1. */
  publishes = 0
  bytes = 0
  /** Whether the broker refused the latest publish of the state topic on this connection. */
  stateRefused = false
  readonly #options: SenderOptions
  /** The items that the broker has not acknowledged yet, oldest first. */
  readonly #unacknowledged = new Set<Item>()
  readonly #sequence: Sequence
  readonly #poison: PoisonMessages
  /** Items that are withheld until they are tried alone. */
  readonly #suspects = new Set<Item>()
  #trial: AbortController | undefined
  /** The suspect in flight on a separate connection. */
  #tried: { readonly item: Item; readonly done: (accepted: boolean) => void } | undefined
  /** Whether suspects are tried on the current connection, because no separate connection is available. */
  #triesHere = false
  /** The suspect that is the only item in flight on the current connection. */
  #alone: Item | undefined
  #connection: Wire | undefined
  #window = 0
  #cancelAckTimer: (() => void) | undefined
  #cancelRetry: (() => void) | undefined
  #cancelRelearn: (() => void) | undefined
  #onIdle: (() => void) | undefined

  constructor(options: SenderOptions) {
    this.#options = options
    this.#sequence = new Sequence(options)
    this.#poison = new PoisonMessages(options.clock, options.maximumPacketSize)
  }

  get unacknowledged(): number {
    return this.#unacknowledged.size + this.#suspects.size
  }

  get state(): string | undefined {
    return this.#sequence.state
  }

  get isWriting(): boolean {
    return this.#sequence.writing
  }

  /** Starts sending. `online` follows when all retained topics that delay it are acknowledged or blocked. */
  attach(connection: Wire): void {
    this.#connection = connection
    this.#window = Math.min(this.#options.window ?? WINDOW, connection.receiveMaximum)
    this.#poison.connected(connection.maximumPacketSize)
    this.#sequence.state = undefined
    this.stateRefused = false
    this.#triesHere = false
    const { events, answers, clock, journal, onAnswer } = this.#options
    if (events.expire(clock.elapsed()) > 0) journal.dropped('events')
    if (answers.expire(clock.elapsed()) > 0) {
      journal.dropped('answers')
      onAnswer()
    }
    this.#retryQuarantined()
    this.#retryTooLarge()
    this.pump()
  }

  /** Publishes the waiting answers, `offline` and all other queued messages. Resolves when all are acknowledged. */
  finish(connection: Wire): Promise<void> {
    this.#sequence.closing = true
    this.#trial?.abort()
    if (this.#connection === undefined) this.attach(connection)
    else this.pump()
    return new Promise((resolve) => {
      if (this.#unacknowledged.size === 0) resolve()
      else this.#onIdle = resolve
    })
  }

  /** Publishes `online` again at the next `pump`. */
  repeatState(): void {
    if (!this.#sequence.closing) this.#sequence.state = undefined
  }

  setWriting(writing: boolean): void {
    this.#sequence.writing = writing
    if (writing) this.pump()
  }

  /** Requeues unacknowledged items. Returns whether the loss revealed a payload size that ends connections. */
  detach(failure: Failure): boolean {
    this.#connection = undefined
    this.#cancelAckTimer?.()
    this.#cancelAckTimer = undefined
    this.#cancelRetry?.()
    this.#cancelRelearn?.()
    this.#trial?.abort()
    this.#trial = undefined
    this.#tried = undefined
    const alone = this.#alone
    this.#alone = undefined
    const explained =
      alone === undefined
        ? this.#poison.connectionLost(failure, this.#unacknowledged)
        : this.#aloneLost(failure, alone) === 'too_large'
    this.#sequence.restore([...this.#unacknowledged, ...this.#suspects], (entry) => this.#options.retained.lost(entry))
    this.#unacknowledged.clear()
    this.#suspects.clear()
    return explained
  }

  #aloneLost(failure: Failure, item: Item): Refusal['block'] | undefined {
    const refusal = this.#poison.aloneLost(failure, item)
    if (refusal !== undefined) this.#refuse(item, refusal)
    if (this.#connection !== undefined) {
      this.#retryQuarantined()
      this.#retryTooLarge()
    }
    return refusal?.block
  }

  /** After `ms`, retries the quarantined topics that have waited `ageMs`, and schedules the remaining topics. */
  #retryQuarantined(ms = RETRY_QUARANTINED_MS, ageMs = RETRY_QUARANTINED_MS): void {
    const { clock, retained } = this.#options
    this.#cancelRetry?.()
    if (!retained.hasQuarantined) return
    const afterLosses = (losses: number) => RETRY_QUARANTINED_MS * 2 ** Math.min(MAX_DOUBLINGS, losses - GIVE_UP_AFTER)
    this.#cancelRetry = clock.after(ms, () => {
      retained.retry('quarantined', ({ losses }) => afterLosses(losses) <= ageMs)
      this.pump()
      this.#retryQuarantined(ageMs, Math.min(2 * ageMs, afterLosses(Number.POSITIVE_INFINITY)))
    })
  }

  /** Retries items that were too large, as soon as a size that ended a connection may be tried again. */
  #retryTooLarge(): void {
    const { relearnInMs } = this.#poison
    this.#cancelRelearn?.()
    if (relearnInMs === undefined) return
    this.#cancelRelearn = this.#options.clock.after(relearnInMs, () => {
      this.#poison.relearn()
      this.#options.retained.retry('too_large')
      this.pump()
    })
  }

  pump(): void {
    const connection = this.#connection
    if (connection === undefined || connection.isDown) return
    while (this.#alone === undefined && this.#unacknowledged.size < this.#window) {
      const item = this.#sequence.next()
      if (item !== undefined) this.#send(connection, item)
      else if (this.#suspects.size === 0 && !this.#poison.doubted) return
      else if (!this.#try(connection)) return
    }
  }

  /** Sends an item, unless the broker would refuse it or it may end the connection. */
  #send(wire: TrialWire, item: Item): void {
    const payload = this.#sequence.take(item, this.#suspects.has(item))
    const fault = item.kind === 'retained' && item.sentAt === 0 ? topicFault(item.topic) : undefined
    const verdict = item.kind === 'state' ? 'fine' : this.#poison.judge(item)
    if (fault !== undefined) this.#refuse(item, { block: 'invalid', detail: fault })
    else if (verdict === 'too_large') this.#refuse(item, TOO_LARGE)
    else if (verdict === 'suspect' && wire === this.#connection && item !== this.#alone) this.#suspects.add(item)
    else this.#publish(wire, item, payload)
  }

  #publish(wire: TrialWire, item: Item, payload: string): void {
    const { clock, echoes } = this.#options
    if (item.kind === 'message') echoes.sending(item.topic, payload)
    else if (payload === '') echoes.clearing(item.topic)
    this.publishes += 1
    this.bytes += item.sentBytes
    item.sentAt = clock.elapsed()
    if (wire === this.#connection) {
      this.#suspects.delete(item)
      this.#unacknowledged.add(item)
      if (this.#cancelAckTimer === undefined) this.#watchAcks()
    }
    const options = item.kind === 'message' ? item.options : RETAINED
    wire.publish(item.topic, payload, options, (reason) => this.#acked(item, reason))
  }

  /** Uses one timer for all publishes. When the timer fires, the oldest publish determines how much longer to wait. */
  #watchAcks(passedMs = 0): void {
    const { clock, ackTimeoutMs = ACK_TIMEOUT_MS } = this.#options
    this.#cancelAckTimer = clock.after(ackTimeoutMs - passedMs, () => {
      this.#cancelAckTimer = undefined
      const oldest = this.#unacknowledged.values().next().value
      if (oldest === undefined) return
      const waitedMs = clock.elapsed() - oldest.sentAt
      const detail = `no PUBACK within ${ackTimeoutMs} ms`
      if (waitedMs < ackTimeoutMs) this.#watchAcks(waitedMs)
      else this.#connection?.drop({ code: 'timeout', detail })
    })
  }

  #acked(item: Item, reason: number): void {
    if (item.kind === 'state') this.stateRefused = reason !== 0
    if (item.kind === 'message') item.onAcknowledged?.()
    if (reason !== 0) {
      this.#refuse(item, this.#poison.refused(item, reason))
      this.#retryTooLarge()
    } else {
      this.#settle(item, true)
      this.#poison.accepted(item)
      if (item.kind === 'retained') this.#options.retained.acked(item)
      if (this.#suspects.size > 0) this.#releaseSuspects()
    }
    this.pump()
    if (this.#unacknowledged.size === 0) this.#onIdle?.()
  }

  /** Tries suspects, smallest first, when nothing else waits. Returns whether a suspect was refused. */
  #try(connection: Wire): boolean {
    if (this.#trial !== undefined || this.#sequence.closing) return false
    const before = this.#suspects.size
    const item = this.#smallest()
    for (const one of this.#suspects) {
      const isHopeless = this.#triesHere && !this.#poison.isWorthALoss(one)
      if (isHopeless || this.#poison.judge(one) === 'too_large') this.#refuse(one, TOO_LARGE)
    }
    if (this.#suspects.size === 0 && this.#options.retained.waiting === 0) this.#poison.allTried()
    if (this.#suspects.size < before) return true
    if (item === undefined) return false
    if (!this.#triesHere) void this.#tryAside()
    else if (this.#unacknowledged.size === 0) {
      this.#alone = item
      this.#send(connection, item)
    }
    return false
  }

  async #tryAside(): Promise<void> {
    const trial = new AbortController()
    this.#trial = trial
    let isOpen = false
    const tryAll = async (wire: TrialWire) => {
      isOpen = true
      for (let item = this.#smallest(); item !== undefined; item = this.#smallest()) {
        const { promise, resolve } = Promise.withResolvers<boolean>()
        this.#tried = { item, done: resolve }
        this.#send(wire, item)
        // Stop, because the broker may end this connection after a refusal, and the next item would be blamed.
        if (!(await promise)) return
      }
    }
    const failure = await this.#options.onTrial(tryAll, trial.signal)
    if (trial.signal.aborted) return
    const item = this.#tried?.item
    this.#trial = undefined
    this.#tried = undefined
    if (failure !== undefined) {
      if (!isOpen || isBlameless(failure)) this.#triesHere = true
      else if (item !== undefined) this.#aloneLost(failure, item)
    }
    this.pump()
  }

  #smallest(): Item | undefined {
    for (const item of this.#suspects) if (item.kind === 'retained' && item.released) this.#suspects.delete(item)
    const allowed = [...this.#suspects].filter((item) => this.#sequence.may(item))
    return allowed.length === 0 ? undefined : allowed.reduce((a, b) => (b.sentBytes < a.sentBytes ? b : a))
  }

  /** Removes an item that was acknowledged, refused or given up. */
  #settle(item: Item, accepted: boolean): void {
    this.#unacknowledged.delete(item)
    this.#suspects.delete(item)
    if (this.#alone === item) this.#alone = undefined
    if (this.#tried?.item !== item) return
    this.#tried.done(accepted)
    this.#tried = undefined
  }

  /** Releases items that are no longer suspects because a larger item was acknowledged. */
  #releaseSuspects(): void {
    const isFree = (item: Item) => item !== this.#tried?.item && this.#poison.judge(item) !== 'suspect'
    const free = [...this.#suspects].filter(isFree)
    for (const item of free) this.#suspects.delete(item)
    this.#sequence.restore(free, (entry) => this.#options.retained.putBack(entry))
  }

  #refuse(item: Item, { block, detail }: Refusal): void {
    this.#settle(item, false)
    const { retained, events, answers, clock, journal, redact = (payload) => payload } = this.#options
    if (item.kind !== 'message') {
      if (item.kind === 'state' || retained.refused(item, block))
        journal.notPublished('retained', item.topic, block, detail)
      return
    }
    journal.notPublished('message', item.topic, block, detail)
    const { isAnswer, ifRefused } = item
    const outbox = isAnswer ? answers : events
    const replacement = block === 'too_large' || block === 'denied' ? ifRefused?.(block) : undefined
    if (replacement === undefined) outbox.dropped += 1
    else {
      const options = { ...replacement.options, isAnswer }
      outbox.push(replacement.topic ?? item.topic, redact(replacement.payload), options, clock.elapsed())
    }
  }
}
