/** Sends what waits in the retained set and the outbox: in order, a limited number at a time, each acknowledged. */
import type { IClientPublishOptions } from 'mqtt'
import type { Clock } from '../base/clock.ts'
import { AckTimer } from './ack-timer.ts'
import type { Connection } from './connection.ts'
import type { Failure } from './failure.ts'
import type { Journal } from './journal.ts'
import { GIVE_UP_AFTER, Losses } from './losses.ts'
import { topicFault } from './names.ts'
import type { Outbox, Outgoing } from './outbox.ts'
import type { Block, Entry, Retained } from './retained.ts'

/** The state topic's `online` or `offline`. */
interface State {
  readonly kind: 'state'
  readonly topic: string
  readonly payload: 'online' | 'offline'
  losses: number
  sentAt: number
}

type Item = Entry | Outgoing | State

export interface SenderOptions {
  readonly retained: Retained
  readonly outbox: Outbox
  readonly clock: Clock
  readonly journal: Journal
  readonly stateTopic: string
  /** Publishes without acknowledgement at a time, at most. */
  readonly window: number
  readonly ackTimeoutMs: number
  /** Called before each zero-length retained publish. */
  readonly onClear: (topic: string) => void
  /** Called before each event or answer. */
  readonly onMessage: (topic: string, payload: string) => void
}

/** A quarantined topic is tried again on a connection of this age; the age doubles with each further loss. */
const RETRY_QUARANTINED_MS = 5_000
/** Fixed header, lengths and packet id. */
const PACKET_OVERHEAD_BYTES = 16
/** PUBACK's reason code for a packet over the broker's limit. */
const PACKET_TOO_LARGE = 149
const TOO_LARGE = 'it is larger than the broker takes'

const RETAINED: IClientPublishOptions = { qos: 1, retain: true }

export class Sender {
  readonly #options: SenderOptions
  /** Oldest first. */
  readonly #unacknowledged = new Set<Item>()
  readonly #ackTimer: AckTimer
  readonly #losses: Losses<Item>
  #connection: Connection | undefined
  #window = 0
  /** What was last sent to the state topic on this connection. */
  #state: State['payload'] | undefined
  #closing = false
  /** Whether retained topics are written. */
  #writing = true
  #publishes = 0
  #bytes = 0
  #cancelRetry: (() => void) | undefined
  #onIdle: (() => void) | undefined

  constructor(options: SenderOptions) {
    const { clock, ackTimeoutMs } = options
    this.#options = options
    this.#losses = new Losses(clock)
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
  attach(connection: Connection): void {
    this.#connection = connection
    this.#window = Math.min(this.#options.window, connection.receiveMaximum)
    this.#state = undefined
    this.#retryQuarantined(RETRY_QUARANTINED_MS, RETRY_QUARANTINED_MS)
    this.pump()
  }

  /** Publishes `offline` before everything else that waits. Resolves when everything is acknowledged. */
  finish(connection: Connection): Promise<void> {
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

  /** The connection is lost: unacknowledged items wait again. */
  detach(failure: Failure): void {
    this.#ackTimer.stop()
    this.#cancelRetry?.()
    const givenUp = this.#losses.connectionLost(failure, this.#unacknowledged)
    const messages: Outgoing[] = []
    for (const item of this.#unacknowledged) {
      if (item.kind === 'retained') this.#options.retained.lost(item)
      else if (item.kind === 'message' && item !== givenUp) messages.push(item)
    }
    if (givenUp !== undefined) {
      const detail = `${givenUp.losses} connections in a row were lost as it was being published`
      this.#refuse(givenUp, 'quarantined', detail)
    }
    this.#options.outbox.restore(messages)
    this.#unacknowledged.clear()
    this.#connection = undefined
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

  /** Sends as much as the window allows. Call it whenever something new waits. */
  pump(): void {
    const connection = this.#connection
    if (connection === undefined || connection.isDown) return
    while (!this.#losses.sendingAlone && this.#unacknowledged.size < this.#window) {
      const item = this.#next()
      if (item === undefined || !this.#losses.maySend(item, this.#unacknowledged.size)) return
      this.#send(connection, item)
    }
  }

  #next(): Item | undefined {
    const { retained, outbox, clock, stateTopic } = this.#options
    const wanted = this.#closing ? 'offline' : retained.awaiting === 0 ? 'online' : undefined
    const state = this.#writing ? wanted : undefined
    if (state !== undefined && state !== this.#state) {
      return { kind: 'state', topic: stateTopic, payload: state, losses: 0, sentAt: 0 }
    }
    const entry = this.#writing ? retained.peek() : undefined
    const message = outbox.waiting === 0 ? undefined : outbox.peek(clock.elapsed())
    if (entry === undefined || message === undefined) return entry ?? message
    return entry.seq < message.seq ? entry : message
  }

  #send(connection: Connection, item: Item): void {
    if (item.kind === 'retained') this.#sendEntry(connection, item)
    else if (item.kind === 'message') this.#sendMessage(connection, item)
    else {
      this.#state = item.payload
      this.#publish(connection, item, item.payload, item.payload.length, RETAINED)
    }
  }

  #sendMessage(connection: Connection, item: Outgoing): void {
    this.#options.outbox.take()
    if (item.bytes + PACKET_OVERHEAD_BYTES <= connection.maximumPacketSize) {
      this.#options.onMessage(item.topic, item.payload)
      this.#publish(connection, item, item.payload, item.bytes - item.topic.length, item.options)
    } else this.#refuse(item, 'too_large', TOO_LARGE)
  }

  #sendEntry(connection: Connection, item: Entry): void {
    const payload = this.#options.retained.take(item) ?? ''
    const bytes = Buffer.byteLength(payload)
    const fault = item.sentAt === 0 ? topicFault(item.topic) : undefined
    if (fault !== undefined) this.#refuse(item, 'invalid', fault)
    else if (exceedsLimit(connection, item.topic, bytes)) this.#refuse(item, 'too_large', TOO_LARGE)
    else {
      if (payload === '') this.#options.onClear(item.topic)
      this.#publish(connection, item, payload, bytes, RETAINED)
    }
  }

  #publish(connection: Connection, item: Item, payload: string, bytes: number, options: IClientPublishOptions): void {
    this.#publishes += 1
    this.#bytes += bytes
    item.sentAt = this.#options.clock.elapsed()
    this.#unacknowledged.add(item)
    this.#ackTimer.sent()
    connection.publish(item.topic, payload, options, (reason) => this.#acked(item, reason))
  }

  #acked(item: Item, reason: number): void {
    this.#unacknowledged.delete(item)
    if (reason !== 0) {
      this.#losses.refused(item)
      const block = reason === PACKET_TOO_LARGE ? 'too_large' : 'denied'
      this.#refuse(item, block, `the broker refuses it with reason ${reason}`)
    } else {
      this.#losses.done(item)
      if (item.kind === 'retained') this.#options.retained.acked(item)
      else item.losses = 0
    }
    this.pump()
    this.#checkIdle()
  }

  /** Stops sending an item: a retained topic is blocked, a message dropped. */
  #refuse(item: Item, block: Block, detail: string): void {
    this.#losses.done(item)
    const isNew = item.kind !== 'retained' || this.#options.retained.refused(item, block)
    if (isNew) this.#options.journal.notPublished(item.topic, block, detail)
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || this.#unacknowledged.size > 0) return
    this.#onIdle()
    this.#onIdle = undefined
  }
}

/** Counts a topic's bytes only if the broker named a limit. */
function exceedsLimit({ maximumPacketSize }: Connection, topic: string, payloadBytes: number): boolean {
  if (maximumPacketSize === Number.POSITIVE_INFINITY) return false
  return payloadBytes + Buffer.byteLength(topic) + PACKET_OVERHEAD_BYTES > maximumPacketSize
}
