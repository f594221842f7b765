/** Events and answers on their way: first in, first out, bounded in number, size and age; at least once over lost connections. */
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
  strikes: number
  sentAt: number
}

export interface OutboxLimits {
  readonly messages: number
  readonly bytes: number
  readonly ageMs: number
}

const defaultLimits: OutboxLimits = { messages: 1000, bytes: 4 * 1024 * 1024, ageMs: 60_000 }
const plain: IClientPublishOptions = { qos: 1 }

export class Outbox {
  readonly #order: Order
  readonly #limits: OutboxLimits
  readonly #queue = new Fifo<Outgoing>()
  #bytes = 0
  #dropped = 0

  constructor(order: Order, limits: OutboxLimits = defaultLimits) {
    this.#order = order
    this.#limits = limits
  }

  /** Messages waiting, those under way not counted. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Messages given up so far, for age or want of room. */
  get dropped(): number {
    return this.#dropped
  }

  /** Appends a message; the oldest waiting ones make room for it. */
  push(topic: string, payload: string, options: SendOptions | undefined, now: number): void {
    const bytes = Buffer.byteLength(payload) + Buffer.byteLength(topic) + propertyBytes(options)
    this.#queue.push({
      kind: 'message',
      topic,
      payload,
      options: options === undefined ? plain : publishOptions(options),
      bytes,
      bornAt: now,
      seq: this.#order.next++,
      strikes: 0,
      sentAt: 0,
    })
    this.#bytes += bytes
    while (this.#queue.size > this.#limits.messages || (this.#bytes > this.#limits.bytes && this.#queue.size > 0))
      this.drop()
  }

  /** The next message that is still worth sending, left in its place. */
  peek(now: number): Outgoing | undefined {
    for (;;) {
      const message = this.#queue.peek()
      if (message === undefined || now - message.bornAt <= this.#limits.ageMs) return message
      this.drop()
    }
  }

  /** Takes what `peek` returned. */
  take(): void {
    const message = this.#queue.shift()
    if (message !== undefined) this.#bytes -= message.bytes
  }

  /** Gives up what `peek` returned. */
  drop(): void {
    this.take()
    this.#dropped += 1
  }

  /** Puts back what was under way when the connection was lost, before all that waits. */
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

/** What the properties take at most, roughly: they count against the broker's packet limit. */
function propertyBytes(options: SendOptions | undefined): number {
  if (options === undefined) return 0
  const { correlationData, userProperties = {}, contentType = '' } = options
  const texts = [
    contentType,
    ...Object.entries(userProperties).flatMap(([key, value]) => [value].flat().map((one) => key + one)),
  ]
  return (correlationData?.length ?? 0) + texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 5, 8)
}
