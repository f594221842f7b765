/**
 * What the broker should hold, what it is known to hold, and what of the difference is under way.
 * Pure bookkeeping: it sends nothing, and the order of its calls is the whole of its input.
 */
import { Fifo } from './fifo.ts'

/** One counter for all that waits to be sent, so that retained topics and messages keep their order among each other. */
export interface Order {
  next: number
}

/**
 * Why a topic is left alone: until another payload, except `denied` and `too_large` (also the next connection),
 * `quarantined` (also `release`) and `invalid` (for ever).
 */
export type Block = 'invalid' | 'too_large' | 'denied' | 'quarantined'

export interface Entry {
  readonly kind: 'retained'
  readonly topic: string
  /** null: nothing must be there. */
  wanted: string | null
  /** null: nothing is there; undefined: not known, or something else than is wanted. */
  held: string | null | undefined
  /** The payload under way; undefined: none. */
  sent: string | null | undefined
  /** Its place in the order; new each time it has to be sent. */
  seq: number
  queued: boolean
  /** Part of what has to be acknowledged before `online`. */
  awaited: boolean
  /** Connections lost in a row with this topic under way. */
  strikes: number
  sentAt: number
  blocked: Block | undefined
  /** The refusal that was told of since the broker last took something here. */
  told: Block | undefined
  /** The round (between two losses of the connection) in which the broker was seen to hold something here. */
  seenIn: number
}

/** Text of unwanted retained messages that is kept for comparison; beyond it only the topic is known. */
const strangerLimit = 64 * 1024 * 1024

export class Retained {
  readonly #order: Order
  readonly #entries = new Map<string, Entry>()
  readonly #queue = new Fifo<Entry>()
  /** Topics that the broker holds and nobody has wanted or cleared yet; undefined: text not kept. */
  readonly #strangers = new Map<string, string | undefined>()
  #strangerLength = 0
  #round = 1
  #awaiting = 0
  #blocked = 0
  #known: (topic: string) => boolean = () => false

  constructor(order: Order) {
    this.#order = order
  }

  /** Entries that were wanting at `settle` and are neither acknowledged nor refused yet. */
  get awaiting(): number {
    return this.#awaiting
  }

  get waiting(): number {
    return this.#queue.size
  }

  get blocked(): number {
    return this.#blocked
  }

  /** Topics that the broker holds though nobody asked for them. */
  strangers(): Iterable<string> {
    return this.#strangers.keys()
  }

  /** Sets what is wanted; true if that has to be sent. */
  hold(topic: string, payload: string | null): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined) return this.#adopt(topic, payload)
    if (entry.wanted === payload) return false
    entry.wanted = payload
    if (entry.blocked !== undefined && entry.blocked !== 'invalid') {
      this.#unblock(entry)
      entry.strikes = 0
    }
    if (this.#enqueue(entry)) return true
    if (!entry.queued) this.#conclude(entry)
    return false
  }

  /** A topic not spoken of before: what is known of it comes from the read-back. */
  #adopt(topic: string, payload: string | null): boolean {
    const known = this.#known(topic)
    const stranger = this.#strangers.has(topic)
    if (payload === null && known && !stranger) return false
    const entry: Entry = {
      kind: 'retained',
      topic,
      wanted: payload,
      held: known && !stranger ? null : undefined,
      sent: undefined,
      seq: 0,
      queued: false,
      awaited: false,
      strikes: 0,
      sentAt: 0,
      blocked: undefined,
      told: undefined,
      seenIn: 0,
    }
    if (stranger) {
      entry.seenIn = this.#round
      if (this.#forgetStranger(topic) === payload) entry.held = payload
    }
    this.#entries.set(topic, entry)
    return this.#enqueue(entry)
  }

  /** Clears the strangers that `owned` claims; the text is '' where it was too much to keep. Returns how many. */
  sweep(owned: (topic: string, payload: string) => boolean): number {
    const mine = [...this.#strangers].filter(([topic, text]) => owned(topic, text ?? ''))
    for (const [topic] of mine) this.#adopt(topic, null)
    return mine.length
  }

  /** Whether any topic is left alone because of the connections that it ended. */
  get quarantined(): boolean {
    return this.#blocked > 0 && this.#entries.values().some(({ blocked }) => blocked === 'quarantined')
  }

  /** Gives quarantined topics another chance, where `due` says so. */
  release(due: (entry: Entry) => boolean): void {
    for (const entry of this.#entries.values()) {
      if (entry.blocked !== 'quarantined' || !due(entry)) continue
      this.#unblock(entry)
      this.#enqueue(entry)
    }
  }

  /** Sends again what is wanted on a topic, though the broker may have it; true if there is something to send. */
  refresh(topic: string): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined || entry.wanted === null) return false
    entry.held = undefined
    return this.#enqueue(entry)
  }

  /** The next entry to send, left in its place. */
  peek(): Entry | undefined {
    for (;;) {
      const entry = this.#queue.peek()
      if (entry === undefined) return undefined
      if (this.#wanting(entry)) return entry
      this.#queue.shift()
      entry.queued = false
      this.#conclude(entry)
    }
  }

  /** Takes what `peek` returned: its payload is under way now; null is a zero-length publish. */
  take(entry: Entry): string | null {
    this.#queue.shift()
    entry.queued = false
    entry.sent = entry.wanted
    return entry.wanted
  }

  acked(entry: Entry): void {
    entry.held = entry.sent
    entry.sent = undefined
    entry.strikes = 0
    entry.told = undefined
    this.#conclude(entry)
    this.#enqueue(entry)
  }

  /** The broker or the protocol will not have it; true if that is news. */
  refused(entry: Entry, block: Block): boolean {
    const stale = entry.sent !== undefined && entry.sent !== entry.wanted
    entry.sent = undefined
    if (entry.blocked === undefined) this.#blocked += 1
    const news = entry.told !== block
    entry.told = block
    entry.blocked = block
    this.#conclude(entry)
    // What was refused is not what is wanted by now.
    if (stale && block !== 'invalid') {
      this.#unblock(entry)
      this.#enqueue(entry)
    }
    return news
  }

  /** The connection went away with this entry under way: whether the broker has it is not known. It keeps its place. */
  lost(entry: Entry, struck: boolean): void {
    entry.sent = undefined
    entry.held = undefined
    entry.queued = true
    if (struck) entry.strikes += 1
  }

  /** The connection is gone, and with it all knowledge of what the broker holds. Nothing may be under way. */
  forget(): void {
    this.#round += 1
    this.#strangers.clear()
    this.#strangerLength = 0
    this.#known = () => false
    for (const entry of this.#entries.values()) entry.held = undefined
  }

  /** The broker holds `text` under `topic`. */
  found(topic: string, text: string): void {
    const entry = this.#entries.get(topic)
    if (entry === undefined) {
      this.#forgetStranger(topic)
      const keep = this.#strangerLength + text.length <= strangerLimit
      if (keep) this.#strangerLength += text.length
      this.#strangers.set(topic, keep ? text : undefined)
      return
    }
    entry.seenIn = this.#round
    // The wanted string itself, not its equal: one copy in memory.
    entry.held = entry.wanted === text ? entry.wanted : undefined
  }

  /** The read-back is over; topics for which `known` is true and that were not found are not there. Queues the difference. */
  settle(known: (topic: string) => boolean): void {
    this.#known = known
    this.#awaiting = 0
    const wanting: Entry[] = []
    for (const entry of this.#entries.values()) {
      entry.awaited = false
      if (entry.seenIn !== this.#round && known(entry.topic)) entry.held = null
      if (entry.blocked === 'denied' || entry.blocked === 'too_large') this.#unblock(entry)
      if (this.#wanting(entry)) wanting.push(entry)
      else {
        entry.queued = false
        this.#conclude(entry)
      }
    }
    for (const entry of wanting) {
      if (!entry.queued) entry.seq = this.#order.next++
      entry.queued = true
      entry.awaited = true
    }
    this.#awaiting = wanting.length
    this.#queue.reset(wanting.sort((a, b) => a.seq - b.seq))
  }

  #wanting(entry: Entry): boolean {
    return entry.held !== entry.wanted && entry.sent === undefined && entry.blocked === undefined
  }

  #enqueue(entry: Entry): boolean {
    if (entry.queued || !this.#wanting(entry)) return false
    entry.queued = true
    entry.seq = this.#order.next++
    this.#queue.push(entry)
    return true
  }

  /** Ends the wait for an entry, and forgets one that is to be nothing and is nothing. */
  #conclude(entry: Entry): void {
    if (entry.awaited) {
      entry.awaited = false
      this.#awaiting -= 1
    }
    if (entry.wanted === null && entry.held === null && entry.sent === undefined) this.#entries.delete(entry.topic)
  }

  #unblock(entry: Entry): void {
    if (entry.blocked === undefined) return
    entry.blocked = undefined
    this.#blocked -= 1
  }

  #forgetStranger(topic: string): string | undefined {
    const text = this.#strangers.get(topic)
    if (this.#strangers.delete(topic)) this.#strangerLength -= text?.length ?? 0
    return text
  }
}
