/** Sends what waits in the retained set and the outbox: in order, a limited number at a time, each acknowledged. */
import type { IClientPublishOptions } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { AckTimer } from './ack-timer.ts'
import { type Connection, PACKET_TOO_LARGE } from './connection.ts'
import type { Failure } from './failure.ts'
import type { Journal } from './journal.ts'
import { GIVE_UP_AFTER, Losses } from './losses.ts'
import { topicFault } from './names.ts'
import type { Outbox, Outgoing } from './outbox.ts'
import type { Block, Entry, Retained } from './retained.ts'
import { SizeLimit } from './size-limit.ts'

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
  readonly stateTopic: string
  /** Publishes without acknowledgement at a time, at most. */
  readonly window: number
  readonly ackTimeoutMs: number
  /** The largest packet that the broker is known to take, in bytes; default: as it says. */
  readonly maximumPacketSize?: number | undefined
  /** Whether a topic may be published at this moment; default: all may. */
  readonly mayPublish?: ((topic: string) => boolean) | undefined
  /** Called before each zero-length retained publish. */
  readonly onClear: (topic: string) => void
  /** Called before each event or answer. */
  readonly onMessage: (topic: string, payload: string) => void
  /** Called after each acknowledgement: fewer may wait. */
  readonly onAcked: () => void
}

/** A quarantined topic is tried again on a connection of this age; the age doubles with each further loss. */
const RETRY_QUARANTINED_MS = 5_000
const TOO_LARGE = 'it is larger than the broker takes'

const RETAINED: IClientPublishOptions = { qos: 1, retain: true }

export class Sender {
  readonly #options: SenderOptions
  /** Oldest first. */
  readonly #unacknowledged = new Set<Item>()
  readonly #ackTimer: AckTimer
  readonly #losses: Losses<Item>
  readonly #sizes: SizeLimit
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
    this.#losses = new Losses(clock, ({ sentBytes }) => this.#sizes.isUntried(sentBytes))
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
    return this.#unacknowledged.size
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
    const { events, answers, clock, journal } = this.#options
    if (events.expire(clock.elapsed()) > 0) journal.dropped('events')
    if (answers.expire(clock.elapsed()) > 0) journal.dropped('answers')
    this.#retryQuarantined(RETRY_QUARANTINED_MS, RETRY_QUARANTINED_MS)
    this.#retryTooLarge()
    this.pump()
  }

  /** Publishes `offline` before everything else that waits. Resolves when everything is acknowledged. */
  finish(connection: Wire): Promise<void> {
    this.#closing = true
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
    this.#ackTimer.stop()
    this.#cancelRetry?.()
    this.#cancelRelearn?.()
    const refusedSize = this.#sizes.lost()
    const suspects = refusedSize ? [] : this.#unacknowledged
    const givenUp = this.#losses.connectionLost(failure, suspects)
    const messages: Outgoing[] = []
    for (const item of this.#unacknowledged) {
      if (item.kind === 'retained') this.#options.retained.lost(item)
      else if (item.kind === 'message' && item !== givenUp) messages.push(item)
    }
    this.#options.events.restore(messages.filter(({ isAnswer }) => !isAnswer))
    this.#options.answers.restore(messages.filter(({ isAnswer }) => isAnswer))
    const tooLarge = givenUp !== undefined && this.#giveUp(givenUp) === 'too_large'
    this.#unacknowledged.clear()
    this.#connection = undefined
    return refusedSize || tooLarge
  }

  #giveUp(item: Item): 'too_large' | 'quarantined' {
    if (this.#sizes.isUntried(item.sentBytes)) {
      this.#sizes.endedConnection(item.sentBytes)
      this.#refuse(item, 'too_large', `the broker ends the connection when it gets it, with ${item.sentBytes} bytes`)
      return 'too_large'
    }
    const detail = `${item.losses} connections in a row were lost as it was being published`
    this.#refuse(item, 'quarantined', detail)
    return 'quarantined'
  }

  /** Tries the quarantined topics that are due again in `ms`, when the connection will be `ageMs` old, and then later. */
  #retryQuarantined(ms: number, ageMs: number): void {
    const { clock, retained } = this.#options
    if (!retained.hasQuarantined) return
    this.#cancelRetry = clock.after(ms, () => {
      retained.retryQuarantined(({ losses }) => RETRY_QUARANTINED_MS * 2 ** (losses - GIVE_UP_AFTER) <= ageMs)
      this.pump()
      this.#retryQuarantined(ageMs, 2 * ageMs)
    })
  }

  /** When a size that ended connections is due again, so is what was held back for it. */
  #retryTooLarge(): void {
    const { relearnInMs } = this.#sizes
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
    while (!this.#losses.sendingAlone && this.#unacknowledged.size < this.#window) {
      const item = this.#next()
      if (item === undefined) return
      if (!this.#may(item)) {
        if (item.kind !== 'message') return
        this.#options.events.take()
        continue
      }
      if (!this.#losses.maySend(item, this.#unacknowledged.size)) return
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
    if (state !== undefined && state !== this.#state) {
      return { kind: 'state', topic: stateTopic, payload: state, losses: 0, sentAt: 0, sentBytes: 0 }
    }
    const answer = answers.peek()
    const other = earlier(this.#writing ? retained.peek() : undefined, events.peek())
    if (answer === undefined || other === undefined) return answer ?? other
    // They take turns: many answers do not keep events waiting, nor many states the answers.
    return this.#answeredLast ? other : answer
  }

  #send(connection: Wire, item: Item): void {
    this.#answeredLast = item.kind === 'message' && item.isAnswer
    if (item.kind === 'retained') this.#sendEntry(connection, item)
    else if (item.kind === 'message') this.#sendMessage(connection, item)
    else {
      this.#state = item.payload
      this.#publish(connection, item, item.payload, item.payload.length, RETAINED)
    }
  }

  #sendMessage(connection: Wire, item: Outgoing): void {
    const { events, answers } = this.#options
    const outbox = item.isAnswer ? answers : events
    outbox.take()
    const besides = item.bytes - item.payloadBytes
    if (!this.#sizes.allows(item.payloadBytes, () => besides)) this.#refuse(item, 'too_large', TOO_LARGE)
    else {
      this.#options.onMessage(item.topic, item.payload)
      this.#publish(connection, item, item.payload, item.payloadBytes, item.options)
    }
  }

  #sendEntry(connection: Wire, item: Entry): void {
    const payload = this.#options.retained.take(item) ?? ''
    const bytes = Buffer.byteLength(payload)
    const fault = item.sentAt === 0 ? topicFault(item.topic) : undefined
    if (fault !== undefined) this.#refuse(item, 'invalid', fault)
    else if (!this.#sizes.allows(bytes, () => Buffer.byteLength(item.topic))) this.#refuse(item, 'too_large', TOO_LARGE)
    else {
      if (payload === '') this.#options.onClear(item.topic)
      this.#publish(connection, item, payload, bytes, RETAINED)
    }
  }

  #publish(connection: Wire, item: Item, payload: string, bytes: number, options: IClientPublishOptions): void {
    this.#publishes += 1
    this.#bytes += bytes
    item.sentAt = this.#options.clock.elapsed()
    item.sentBytes = bytes
    this.#unacknowledged.add(item)
    this.#ackTimer.sent()
    connection.publish(item.topic, payload, options, (reason) => this.#acked(item, reason))
  }

  #acked(item: Item, reason: number): void {
    this.#unacknowledged.delete(item)
    if (reason !== 0) {
      const block = reason === PACKET_TOO_LARGE ? 'too_large' : 'denied'
      if (block === 'too_large') this.#sizes.refused(item.sentBytes)
      else this.#losses.refused(item)
      this.#refuse(item, block, `the broker refuses it with reason ${reason}`)
    } else {
      this.#losses.done(item)
      this.#sizes.acknowledged(item.sentBytes)
      if (item.kind === 'retained') this.#options.retained.acked(item)
      else item.losses = 0
    }
    this.pump()
    this.#options.onAcked()
    this.#checkIdle()
  }

  /** Stops sending an item: a retained topic is blocked, a message dropped or replaced. */
  #refuse(item: Item, block: Block, detail: string): void {
    this.#losses.done(item)
    const isNew = item.kind !== 'retained' || this.#options.retained.refused(item, block)
    if (isNew) this.#options.journal.notPublished(item.topic, block, detail)
    if (item.kind === 'message') this.#replace(item, block)
  }

  #replace({ topic, isAnswer, ifRefused }: Outgoing, why: Block): void {
    const { events, answers, clock } = this.#options
    const outbox = isAnswer ? answers : events
    const replacement = why === 'too_large' || why === 'denied' ? ifRefused?.(why) : undefined
    if (replacement === undefined) outbox.lost()
    else {
      const options = { ...replacement.options, isAnswer }
      outbox.push(replacement.topic ?? topic, replacement.payload, options, clock.elapsed())
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
