/** A queue of events or of answers. Messages with the same key stay in order, and the keys take turns. */
import type { IClientPublishOptions } from 'mqtt'
import { Fifo } from './fifo.ts'
import type { Order } from './retained.ts'
import type { SendOptions } from './types.ts'

export interface Outgoing {
  readonly kind: 'message'
  readonly topic: string
  readonly payload: string
  readonly options: IClientPublishOptions
  readonly isAnswer: boolean
  readonly ifRefused: SendOptions['ifRefused']
  readonly onAcknowledged: SendOptions['onAcknowledged']
  /** Size of the topic and the properties, in bytes. */
  readonly overheadBytes: number
  readonly queuedAt: number
  readonly seq: number
  /** Number of consecutive connections that were lost while this message was unacknowledged. */
  losses: number
  sentAt: number
  /** Size of the payload, in bytes. */
  readonly sentBytes: number
}

export interface OutboxLimits {
  readonly messages: number
  readonly bytes: number
}

/** While connected, the limits only restrict the memory usage. */
const CONNECTED: OutboxLimits = { messages: 50_000, bytes: 32 * 1024 * 1024 }
const DISCONNECTED: OutboxLimits = { messages: 1000, bytes: 4 * 1024 * 1024 }
/** Messages that have waited longer than this when a connection begins are dropped. */
const MAX_AGE_MS = 60_000
const NO_PROPERTIES: IClientPublishOptions = { qos: 1 }

export class Outbox {
  /** Number of waiting messages, excluding messages in flight. */
  waiting = 0
  /** Total size of the waiting messages. */
  bytes = 0
  dropped = 0
  connected = false
  readonly #order: Order
  readonly #byTopic: boolean
  /** The queues by key. The first queue contains the next message to send. Empty queues are removed. */
  readonly #queues = new Map<string, Fifo<Outgoing>>()

  /** @param byTopic whether topics take turns; messages then keep their order only within a topic */
  constructor(order: Order, byTopic: boolean) {
    this.#order = order
    this.#byTopic = byTopic
  }

  /** If a limit is exceeded, drops the oldest other message with this key or, if there is none, with the next key. */
  push(topic: string, payload: string, options: SendOptions | undefined, now: number): void {
    const key = this.#byTopic ? topic : ''
    const sentBytes = Buffer.byteLength(payload)
    const overheadBytes = Buffer.byteLength(topic) + (options === undefined ? 0 : propertyBytes(options))
    const before = { messages: this.waiting, bytes: this.bytes }
    const queue = this.#queues.get(key) ?? new Fifo()
    if (queue.size === 0) this.#queues.set(key, queue)
    queue.push({
      kind: 'message',
      topic,
      payload,
      options: options === undefined ? NO_PROPERTIES : publishOptions(options),
      isAnswer: options?.isAnswer ?? false,
      ifRefused: options?.ifRefused,
      onAcknowledged: options?.onAcknowledged,
      overheadBytes,
      queuedAt: now,
      seq: this.#order.next++,
      losses: 0,
      sentAt: 0,
      sentBytes,
    })
    this.waiting += 1
    this.bytes += sentBytes + overheadBytes
    const limits = this.connected ? CONNECTED : DISCONNECTED
    // Keep the messages that were accepted while connected: the queue must not grow, but need not shrink.
    const messages = Math.max(limits.messages, before.messages)
    const bytes = Math.max(limits.bytes, before.bytes)
    while (this.waiting > messages || this.bytes > bytes) this.#displace(key)
  }

  expire(now: number): number {
    const before = this.dropped
    for (const [key, queue] of this.#queues) {
      while (now - (queue.peek()?.queuedAt ?? now) > MAX_AGE_MS) this.#drop(key, queue)
    }
    return this.dropped - before
  }

  peek(): Outgoing | undefined {
    return this.#queues.values().next().value?.peek()
  }

  take(): void {
    const [next] = this.#queues
    if (next === undefined) return
    const [key, queue] = next
    this.#shift(key, queue)
    this.#queues.delete(key)
    if (queue.size > 0) this.#queues.set(key, queue)
  }

  /** Puts back unacknowledged messages from a lost connection, ahead of the other messages of their keys. */
  restore(messages: readonly Outgoing[]): void {
    for (const [key, returned] of Map.groupBy(messages, ({ topic }) => (this.#byTopic ? topic : ''))) {
      const queue = this.#queues.get(key) ?? new Fifo()
      queue.reset([...returned, ...queue.values()])
      this.#queues.set(key, queue)
    }
    this.waiting += messages.length
    for (const { sentBytes, overheadBytes } of messages) this.bytes += sentBytes + overheadBytes
  }

  #displace(key: string): void {
    const own = this.#queues.get(key)
    const [turn] = this.#queues
    if (own !== undefined && own.size > 1) this.#drop(key, own)
    else if (turn !== undefined) this.#drop(...turn)
  }

  #drop(key: string, queue: Fifo<Outgoing>): void {
    this.#shift(key, queue)
    this.dropped += 1
  }

  #shift(key: string, queue: Fifo<Outgoing>): void {
    const message = queue.shift()
    if (message === undefined) return
    this.waiting -= 1
    this.bytes -= message.sentBytes + message.overheadBytes
    if (queue.size === 0) this.#queues.delete(key)
  }
}

function publishOptions({ correlationData, userProperties, contentType }: SendOptions): IClientPublishOptions {
  return {
    qos: 1,
    properties: {
      ...(correlationData === undefined ? {} : { correlationData }),
      ...(userProperties === undefined ? {} : { userProperties }),
      ...(contentType === undefined ? {} : { contentType }),
    },
  }
}

/** Returns an upper bound of the properties' size, which counts towards the broker's packet limit. */
function propertyBytes({ correlationData, userProperties = {}, contentType = '' }: SendOptions): number {
  let bytes = 13 + (correlationData?.length ?? 0) + Buffer.byteLength(contentType)
  for (const [key, values] of Object.entries(userProperties)) {
    for (const value of [values].flat()) bytes += Buffer.byteLength(key + value) + 5
  }
  return bytes
}
