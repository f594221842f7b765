/** The queue of events and answers: first in, first out, limited in number, size and age. */
import type { IClientPublishOptions } from 'mqtt'
import { Fifo } from './fifo.ts'
import type { Order } from './retained.ts'
import type { SendOptions } from './types.ts'

export interface Outgoing {
  readonly kind: 'message'
  readonly topic: string
  readonly payload: string
  readonly options: IClientPublishOptions
  /** Topic, payload and properties. */
  readonly bytes: number
  readonly bornAt: number
  readonly seq: number
  /** Connections lost in a row while this message was unacknowledged. */
  losses: number
  sentAt: number
}

export interface OutboxLimits {
  readonly messages: number
  readonly bytes: number
  readonly ageMs: number
}

const DEFAULT_LIMITS: OutboxLimits = { messages: 1000, bytes: 4 * 1024 * 1024, ageMs: 60_000 }
const NO_PROPERTIES: IClientPublishOptions = { qos: 1 }

export class Outbox {
  readonly #order: Order
  readonly #limits: OutboxLimits
  readonly #queue = new Fifo<Outgoing>()
  #bytes = 0
  #dropped = 0

  constructor(order: Order, limits: OutboxLimits = DEFAULT_LIMITS) {
    this.#order = order
    this.#limits = limits
  }

  /** Messages that wait to be sent; unacknowledged ones do not count. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Messages dropped so far because of the limits. */
  get dropped(): number {
    return this.#dropped
  }

  /** Appends a message. Beyond the limits the oldest waiting ones are dropped. */
  push(topic: string, payload: string, options: SendOptions | undefined, now: number): void {
    const bytes = Buffer.byteLength(payload) + Buffer.byteLength(topic) + propertyBytes(options)
    this.#queue.push({
      kind: 'message',
      topic,
      payload,
      options: options === undefined ? NO_PROPERTIES : publishOptions(options),
      bytes,
      bornAt: now,
      seq: this.#order.next++,
      losses: 0,
      sentAt: 0,
    })
    this.#bytes += bytes
    while (this.#queue.size > this.#limits.messages || (this.#bytes > this.#limits.bytes && this.#queue.size > 0))
      this.#drop()
  }

  /** The next message that is young enough to send; it stays in the queue. Drops older ones. */
  peek(now: number): Outgoing | undefined {
    for (;;) {
      const message = this.#queue.peek()
      if (message === undefined || now - message.bornAt <= this.#limits.ageMs) return message
      this.#drop()
    }
  }

  /** Takes the message that `peek` returned. */
  take(): void {
    const message = this.#queue.shift()
    if (message !== undefined) this.#bytes -= message.bytes
  }

  #drop(): void {
    this.take()
    this.#dropped += 1
  }

  /** Puts messages that a lost connection left unacknowledged back to the front. */
  restore(messages: Outgoing[]): void {
    if (messages.length === 0) return
    for (const message of messages) this.#bytes += message.bytes
    this.#queue.reset([...messages, ...this.#queue.values()])
  }
}

function publishOptions({
  correlationData,
  userProperties,
  contentType,
  expirySeconds,
}: SendOptions): IClientPublishOptions {
  return {
    qos: 1,
    properties: {
      ...(correlationData === undefined ? {} : { correlationData }),
      ...(userProperties === undefined ? {} : { userProperties }),
      ...(contentType === undefined ? {} : { contentType }),
      ...(expirySeconds === undefined ? {} : { messageExpiryInterval: expirySeconds }),
    },
  }
}

/** An upper estimate of the properties' size, which counts against the broker's packet limit. */
function propertyBytes(options: SendOptions | undefined): number {
  if (options === undefined) return 0
  const { correlationData, userProperties = {}, contentType = '' } = options
  const texts = [
    contentType,
    ...Object.entries(userProperties).flatMap(([key, value]) => [value].flat().map((one) => key + one)),
  ]
  return (correlationData?.length ?? 0) + texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 5, 8)
}
