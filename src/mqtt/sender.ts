/** Moves what waits in the retained set and the outbox through a connection: in order, few at a time, each acknowledged. */
import type { IClientPublishOptions } from 'mqtt'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import type { Failure } from './failure.ts'
import { topicFault } from './names.ts'
import type { Outbox, Outgoing } from './outbox.ts'
import type { Block, Entry, Retained } from './retained.ts'

/** The state topic's `online` or `offline`. */
interface State {
  readonly kind: 'state'
  readonly topic: string
  readonly payload: 'online' | 'offline'
  strikes: number
  sentAt: number
}

type Item = Entry | Outgoing | State

export interface SenderOptions {
  readonly retained: Retained
  readonly outbox: Outbox
  readonly clock: Clock
  readonly log: Logger
  readonly stateTopic: string
  readonly window: number
  readonly ackTimeoutMs: number
  /** A zero-length retained publish goes out to `topic`. */
  readonly onClear: (topic: string) => void
}

/** From so many connections lost in a row with it under way, an item is sent with nothing beside it: then its guilt shows. */
const suspectAt = 2
const guiltyAt = 3
/** A refusal so short before the end of a connection is the reason for it: Mosquitto 2.0.11 with `max_queued_messages 0` hangs up. */
const refusalMs = 500
/** A connection has to be so old before what is quarantined gets another chance; twice as old after each further loss. */
const paroleMs = 5_000
/** Refusals told one by one per connection; a broker that denies a prefix would else fill the log. */
const complaintLimit = 10
/** Fixed header, lengths and packet id. */
const packetOverhead = 16
const tooLarge = 'it is larger than the broker takes'

const retain: IClientPublishOptions = { qos: 1, retain: true }

export class Sender {
  readonly #options: SenderOptions
  readonly #inflight = new Set<Item>()
  #connection: Connection | undefined
  #window = 0
  #solo: Item | undefined
  #state: State['payload'] | undefined
  #closing = false
  #complaints = 0
  #publishes = 0
  #bytes = 0
  /** The last item that the broker refused, and when. */
  #refused: { readonly item: Item; readonly at: number } | undefined
  #stopWatch: (() => void) | undefined
  #stopParole: (() => void) | undefined
  #onIdle: (() => void) | undefined

  constructor(options: SenderOptions) {
    this.#options = options
  }

  get unacknowledged(): number {
    return this.#inflight.size
  }

  get publishes(): number {
    return this.#publishes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Starts to send; `online` follows when all that the retained set awaits is done. */
  attach(connection: Connection): void {
    this.#connection = connection
    this.#window = Math.min(this.#options.window, connection.receiveMaximum)
    this.#complaints = 0
    this.#state = undefined
    this.#parole(paroleMs, paroleMs)
    this.pump()
  }

  /** Publishes `offline` before all else that waits; resolves when everything is acknowledged. */
  finish(connection: Connection): Promise<void> {
    this.#closing = true
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#connection === undefined) this.attach(connection)
      else this.pump()
      this.#checkIdle()
    })
  }

  /** Says `online` once more, if that has been said. */
  repeatState(): void {
    if (!this.#closing) this.#state = undefined
  }

  /** The connection is over: what was under way waits again. */
  detach(failure: Failure): void {
    this.#stopWatch?.()
    this.#stopWatch = undefined
    this.#stopParole?.()
    // A broker that hangs up may mean this very message, or one that it has just refused; one that hangs means none.
    const refused = failure.code === 'timeout' ? undefined : this.#justRefused()
    const struck = failure.code !== 'timeout' && refused === undefined
    const messages: Outgoing[] = []
    for (const item of this.#inflight) {
      if (item.kind === 'retained') this.#options.retained.lost(item, struck)
      else if (struck) item.strikes += 1
      if (this.#convict(item, struck && item === this.#solo)) continue
      if (item.kind === 'message') messages.push(item)
    }
    if (refused?.kind === 'retained') {
      refused.strikes += 1
      this.#convict(refused, true)
    }
    this.#options.outbox.restore(messages)
    this.#inflight.clear()
    this.#solo = undefined
    this.#refused = undefined
    this.#connection = undefined
  }

  #justRefused(): Item | undefined {
    const { item, at = Number.NEGATIVE_INFINITY } = this.#refused ?? {}
    return this.#options.clock.elapsed() - at <= refusalMs ? item : undefined
  }

  /** When the connection is `ageMs` old, in `ms`: it bears what it carries, so that there is something to lose again. */
  #parole(ms: number, ageMs: number): void {
    const { clock, retained } = this.#options
    if (!retained.quarantined) return
    this.#stopParole = clock.after(ms, () => {
      retained.release(({ strikes }) => paroleMs * 2 ** (strikes - guiltyAt) <= ageMs)
      this.pump()
      this.#parole(ageMs, 2 * ageMs)
    })
  }

  /** Sends as much as the window allows; call it whenever something new waits. */
  pump(): void {
    const connection = this.#connection
    if (connection === undefined || connection.isDown) return
    while (this.#solo === undefined && this.#inflight.size < this.#window) {
      const item = this.#next()
      if (item === undefined) return
      if (item.strikes >= suspectAt) {
        if (this.#inflight.size > 0) return
        this.#solo = item
      }
      this.#send(connection, item)
    }
  }

  #next(): Item | undefined {
    const { retained, outbox, clock, stateTopic } = this.#options
    const state = this.#closing ? 'offline' : retained.awaiting === 0 ? 'online' : undefined
    if (state !== undefined && state !== this.#state) {
      return { kind: 'state', topic: stateTopic, payload: state, strikes: 0, sentAt: 0 }
    }
    const entry = retained.peek()
    const message = outbox.waiting === 0 ? undefined : outbox.peek(clock.elapsed())
    if (entry === undefined || message === undefined) return entry ?? message
    return entry.seq < message.seq ? entry : message
  }

  #send(connection: Connection, item: Item): void {
    if (item.kind === 'retained') this.#sendEntry(connection, item)
    else if (item.kind === 'message') this.#sendMessage(connection, item)
    else {
      this.#state = item.payload
      this.#publish(connection, item, item.payload, item.payload.length, retain)
    }
  }

  #sendMessage(connection: Connection, item: Outgoing): void {
    this.#options.outbox.take()
    if (item.bytes + packetOverhead <= connection.maximumPacketSize) {
      this.#publish(connection, item, item.payload, item.bytes - item.topic.length, item.options)
    } else {
      this.#release(item)
      this.#complain(item.topic, tooLarge)
    }
  }

  #sendEntry(connection: Connection, item: Entry): void {
    const payload = this.#options.retained.take(item) ?? ''
    const bytes = Buffer.byteLength(payload)
    const block = this.#blockFor(connection, item, bytes)
    if (block !== undefined) {
      this.#release(item)
      this.#refuse(item, block, block === 'invalid' ? topicFault(item.topic) : tooLarge)
      return
    }
    if (payload === '') this.#options.onClear(item.topic)
    this.#publish(connection, item, payload, bytes, retain)
  }

  #blockFor(connection: Connection, item: Entry, bytes: number): Block | undefined {
    if (item.sentAt === 0 && topicFault(item.topic) !== undefined) return 'invalid'
    const limit = connection.maximumPacketSize
    if (limit === Number.POSITIVE_INFINITY) return undefined
    return bytes + Buffer.byteLength(item.topic) + packetOverhead > limit ? 'too_large' : undefined
  }

  #publish(connection: Connection, item: Item, payload: string, bytes: number, options: IClientPublishOptions): void {
    this.#publishes += 1
    this.#bytes += bytes
    item.sentAt = this.#options.clock.elapsed()
    this.#inflight.add(item)
    if (this.#stopWatch === undefined) this.#watch(this.#options.ackTimeoutMs)
    connection.publish(item.topic, payload, options, (reason) => this.#acked(item, reason))
  }

  #acked(item: Item, reason: number): void {
    this.#inflight.delete(item)
    this.#release(item)
    if (reason !== 0) {
      const why = `the broker refuses it with reason ${reason}`
      this.#refused = { item, at: this.#options.clock.elapsed() }
      if (item.kind === 'retained') this.#refuse(item, reason === 149 ? 'too_large' : 'denied', why)
      else this.#complain(item.topic, why)
    } else if (item.kind === 'retained') this.#options.retained.acked(item)
    else item.strikes = 0
    this.pump()
    this.#checkIdle()
  }

  #release(item: Item): void {
    if (this.#solo === item) this.#solo = undefined
  }

  #refuse(item: Entry, block: Block, why: string | undefined): void {
    if (this.#options.retained.refused(item, block)) this.#complain(item.topic, why ?? block)
  }

  /** Whether an item to which the end of a connection is due is given up, so that it does not end every one to come. */
  #convict(item: Item, due: boolean): boolean {
    if (!due || item.strikes < guiltyAt) return false
    const why = `${item.strikes} connections in a row were lost as it was being published`
    if (item.kind === 'retained') this.#refuse(item, 'quarantined', why)
    else this.#complain(item.topic, why)
    return true
  }

  #complain(topic: string, why: string): void {
    this.#complaints += 1
    if (this.#complaints <= complaintLimit)
      this.#options.log.warn({ topic, why }, `not published to ${JSON.stringify(topic)}: ${why}`)
    if (this.#complaints === complaintLimit)
      this.#options.log.warn({}, 'further refused topics of this connection are not logged')
  }

  /** One timer for all: the oldest publish decides, and it is looked at again only when it could be late. */
  #watch(ms: number): void {
    const { clock, ackTimeoutMs } = this.#options
    this.#stopWatch = clock.after(ms, () => {
      this.#stopWatch = undefined
      const oldest = this.#inflight.values().next().value
      if (oldest === undefined) return
      const left = oldest.sentAt + ackTimeoutMs - clock.elapsed()
      if (left > 0) return this.#watch(left)
      this.#connection?.drop({ code: 'timeout', detail: `no acknowledgement of a publish within ${ackTimeoutMs} ms` })
    })
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || this.#inflight.size > 0) return
    this.#onIdle()
    this.#onIdle = undefined
  }
}
