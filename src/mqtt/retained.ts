/**
 * What the broker should hold, what it is known to hold, and which updates are on their way.
 * It sends nothing and reads no clock: its state depends on the order of the calls alone.
 */
import { Fifo } from './fifo.ts'
import type { Redact } from './types.ts'
import { digest, Unowned } from './unowned.ts'

/** One counter for everything that waits, so that retained topics and messages are sent in the order of their calls. */
export interface Order {
  next: number
}

/**
 * Why a topic is not sent. Each ends with another payload, except `invalid`, which never ends.
 * `denied` and `too_large` also end with the next connection, `quarantined` with `retryQuarantined`.
 */
export type Block = 'invalid' | 'too_large' | 'denied' | 'quarantined'

/**
 * Gives the payload again that is to be held on a topic; `undefined`: there is nothing to hold any more. Better one for
 * many topics than one for each: those would take more than what they save.
 */
export type PayloadSource = (topic: string) => string | undefined

/** What is to be held on a topic, and what is known of the broker's copy. */
export class Entry {
  readonly kind = 'retained'
  readonly topic: string
  /** Whether `wanted`, `held` and `sent` are marks of payloads: from the first one on that can be had again. */
  marked: boolean
  source: PayloadSource | undefined
  /** What `wanted` is the mark of; given up when the broker has it, if it can be had again. */
  text: string | undefined
  /** null: the broker should hold nothing. */
  wanted: string | null
  /** null: the broker holds nothing; undefined: unknown; `OTHER`: perhaps not what is wanted. */
  held: string | null | undefined = undefined
  /** The payload that is sent and not acknowledged; undefined: none. */
  sent: string | null | undefined = undefined
  /** Its place in the order; new each time it has to be sent. */
  seq = 0
  queued = false
  /** Whether `online` waits for this entry. */
  awaited = false
  /** Connections lost in a row while this topic was unacknowledged. */
  losses = 0
  sentAt = 0
  /** Size of the payload that was sent last. */
  sentBytes = 0
  blocked: Block | undefined = undefined
  /** The latest block that was reported; undefined after the broker accepted a publish. */
  reported: Block | undefined = undefined
  /** Whether another client owns the topic since. */
  released = false

  constructor(topic: string, payload: string | null, source: PayloadSource | undefined) {
    this.topic = topic
    this.marked = source !== undefined
    this.source = source
    this.text = this.marked ? (payload ?? undefined) : undefined
    this.wanted = kept(payload, this)
  }
}

export class Retained {
  /** Entries that are not sent. */
  blocked = 0
  /** Entries that gate `online`, had to be sent at `settle`, and are neither acknowledged nor blocked yet. */
  awaiting = 0
  readonly #order: Order
  readonly #delaysOnline: (topic: string) => boolean
  readonly #redact: Redact
  readonly #entries = new Map<string, Entry>()
  readonly #queue = new Fifo<Entry>()
  readonly #unowned = new Unowned()
  /** Whether everything that the broker holds on a topic has been read back. */
  #known: (topic: string) => boolean = () => false

  /** `delaysOnline`: default: all topics do. `redact`: applied to what a source gives; `hold` takes redacted payloads. */
  constructor(order: Order, delaysOnline: (topic: string) => boolean = () => true, redact: Redact = (text) => text) {
    this.#order = order
    this.#delaysOnline = delaysOnline
    this.#redact = redact
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** Sets what is wanted. Returns whether that has to be sent. */
  hold(topic: string, payload: string | null, source?: PayloadSource): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined) {
      const made = this.#create(topic, payload, source)
      return made !== undefined && this.#enqueue(made)
    }
    if (source !== undefined && !entry.marked) markAll(entry)
    entry.source = source
    const wanted = kept(payload, entry)
    if (entry.wanted === wanted) {
      // From now on this link owns it.
      if (entry.marked && source === undefined) entry.text = payload ?? undefined
      return false
    }
    entry.wanted = wanted
    if (entry.marked) entry.text = payload ?? undefined
    if (entry.blocked !== undefined && entry.blocked !== 'invalid') this.#unblock(entry)
    if (this.#enqueue(entry)) return true
    if (!entry.queued) this.#conclude(entry)
    return false
  }

  /** Adds an entry; what the broker holds there is known from the read-back. */
  #create(topic: string, payload: string | null, source?: PayloadSource): Entry | undefined {
    const known = this.#known(topic)
    const unowned = this.#unowned.all.has(topic)
    if (payload === null && known && !unowned) return undefined
    const entry = new Entry(topic, payload, source)
    if (unowned) entry.held = this.#unowned.take(topic, payload) ? entry.wanted : OTHER
    else if (known) entry.held = null
    this.#entries.set(topic, entry)
    spare(entry)
    return entry
  }

  /**
   * Another connection of this process is about to publish what is wanted from now on. Call what it returns when the broker
   * has that.
   */
  expect(topic: string, payload: string | null): () => void {
    const entry = this.#entries.get(topic) ?? this.#create(topic, payload)
    if (entry === undefined) return () => {}
    const wanted = kept(payload, entry)
    entry.wanted = wanted
    return () => {
      // After a lost connection the read-back says what the broker has.
      if (entry.wanted !== wanted || entry.held === undefined) return
      entry.held = wanted
      this.#conclude(entry)
    }
  }

  /** Clears the unowned topics that `owned` accepts and returns how many. The payload is '' if it was not kept. */
  sweep(owned: (topic: string, payload: string) => boolean): number {
    const found = [...this.#unowned.all].filter(([topic, { text = '' }]) => owned(topic, text))
    for (const [topic] of found) this.hold(topic, null)
    return found.length
  }

  get hasQuarantined(): boolean {
    return this.blocked > 0 && this.#entries.values().some(({ blocked }) => blocked === 'quarantined')
  }

  /** Queues the entries again that are blocked so, and for which `due` is true. */
  retry(block: Block, due: (entry: Entry) => boolean = () => true): void {
    for (const entry of this.#entries.values()) {
      if (entry.blocked !== block || !due(entry)) continue
      this.#unblock(entry)
      this.#enqueue(entry)
    }
  }

  /** Sends what is wanted on a topic again, even if the broker holds it. */
  refresh(topic: string): void {
    const entry = this.#entries.get(topic)
    if (entry === undefined || entry.wanted === null) return
    // It may have been found already in a read-back that is not over.
    entry.held = OTHER
    this.#enqueue(entry)
  }

  /** Stops holding the topics that `isOthers` accepts; what the broker has there counts as read back. */
  release(isOthers: (topic: string) => boolean): void {
    for (const entry of this.#entries.values()) {
      if (!isOthers(entry.topic)) continue
      this.#unblock(entry)
      this.#entries.delete(entry.topic)
      // It may still be in the queue, or on its way: nothing follows from that any more.
      entry.released = true
      this.#conclude(entry)
      const last = entry.sent === undefined ? entry.held : entry.sent
      if (typeof last !== 'string') continue
      this.#unowned.add(entry.topic, entry.marked ? { mark: last } : { text: last })
    }
  }

  /** The next entry to send; it stays in the queue. */
  peek(): Entry | undefined {
    for (;;) {
      const entry = this.#queue.peek()
      if (entry === undefined) return undefined
      if (this.#differs(entry)) return entry
      this.#queue.shift()
      entry.queued = false
      this.#conclude(entry)
    }
  }

  /**
   * Takes the entry that `peek` returned, or one that was taken and not sent. Returns the payload to send, which may have
   * changed if it is asked for again; null: a zero-length publish.
   */
  take(entry: Entry): string | null {
    if (entry.queued) this.#queue.shift()
    entry.queued = false
    if (entry.marked && entry.wanted !== null && entry.text === undefined) {
      const again = entry.source?.(entry.topic)
      entry.text = again === undefined ? undefined : this.#redact(again)
      entry.wanted = kept(entry.text ?? null, entry)
    }
    entry.sent = entry.wanted
    return entry.marked && entry.wanted !== null ? (entry.text ?? null) : entry.wanted
  }

  /** An entry that was taken is not sent after all: it waits again, as the last. */
  putBack(entry: Entry): void {
    if (entry.released) return
    entry.sent = undefined
    this.#enqueue(entry)
  }

  acked(entry: Entry): void {
    if (entry.released) return
    entry.held = entry.sent
    if (entry.source !== undefined) spare(entry)
    entry.sent = undefined
    entry.reported = undefined
    this.#conclude(entry)
    this.#enqueue(entry)
  }

  /** Stops sending an entry. Returns whether this block has to be reported. */
  refused(entry: Entry, block: Block): boolean {
    if (entry.released) return false
    const outdated = entry.sent !== undefined && entry.sent !== entry.wanted
    entry.sent = undefined
    if (entry.blocked === undefined) this.blocked += 1
    const isNew = entry.reported !== block
    entry.reported = block
    entry.blocked = block
    this.#conclude(entry)
    // The refused payload is not the wanted one any more: that may be accepted.
    if (outdated && block !== 'invalid') {
      this.#unblock(entry)
      this.#enqueue(entry)
    }
    return isNew
  }

  /**
   * The connection was lost while this entry was unacknowledged: the broker may have it or not. The entry keeps its
   * place in the order; `settle` queues it again.
   */
  lost(entry: Entry): void {
    if (entry.released) return
    entry.sent = undefined
    entry.held = undefined
    entry.queued = true
  }

  /** Forgets what the broker holds, after a lost connection. Every unacknowledged entry must have been `lost` before. */
  forget(): void {
    this.#unowned.clear()
    this.#known = () => false
    for (const entry of this.#entries.values()) entry.held = undefined
  }

  /** The broker holds `text` under `topic`. */
  found(topic: string, text: string): void {
    const entry = this.#entries.get(topic)
    if (entry === undefined) {
      this.#unowned.add(topic, { text })
      return
    }
    // The wanted string itself, not an equal one: one copy in memory. Another one is kept until what is wanted is known.
    const found = kept(text, entry)
    entry.held = entry.wanted === found ? entry.wanted : found
    spare(entry)
  }

  /** Whether `topic` is wanted, on its way to be cleared, or was found on the broker. */
  concerns(topic: string): boolean {
    return this.#entries.has(topic) || this.#unowned.all.has(topic)
  }

  /** Whether a live message may be an own publish: it says what is wanted, on its way, or known to be held. */
  mayBeOwn(topic: string, text: string): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined) return text === '' && !this.#unowned.all.has(topic)
    const payload = kept(text === '' ? null : text, entry)
    return entry.wanted === payload || entry.sent === payload || entry.held === payload
  }

  /** Another client published `text`. The broker may hold that now; only `refresh` sends what is wanted again. */
  changedByOthers(topic: string, text: string): void {
    const entry = this.#entries.get(topic)
    if (entry !== undefined) entry.held = text === '' ? null : undefined
    else if (text === '') this.#unowned.take(topic, null)
    else this.#unowned.add(topic, { text })
  }

  /** Ends the read-back and queues the difference, what gates `online` first. The broker holds nothing on a `known` topic that was not found. */
  settle(known: (topic: string) => boolean): void {
    this.#known = known
    this.awaiting = 0
    const different: Entry[] = []
    for (const entry of this.#entries.values()) {
      entry.awaited = false
      if (entry.held === undefined && known(entry.topic)) entry.held = null
      if (entry.blocked === 'denied' || entry.blocked === 'too_large') this.#unblock(entry)
      if (this.#differs(entry)) different.push(entry)
      else {
        entry.queued = false
        this.#conclude(entry)
      }
    }
    for (const entry of different) {
      if (!entry.queued) entry.seq = this.#order.next++
      entry.queued = true
      entry.awaited = this.#delaysOnline(entry.topic)
      if (entry.awaited) this.awaiting += 1
    }
    this.#queue.reset(different.sort((a, b) => Number(b.awaited) - Number(a.awaited) || a.seq - b.seq))
  }

  /** Whether an entry has to be sent: the broker does not hold what is wanted, and nothing prevents or precedes it. */
  #differs(entry: Entry): boolean {
    return entry.held !== entry.wanted && entry.sent === undefined && entry.blocked === undefined && !entry.released
  }

  #enqueue(entry: Entry): boolean {
    if (entry.queued || !this.#differs(entry)) return false
    entry.queued = true
    entry.seq = this.#order.next++
    this.#queue.push(entry)
    return true
  }

  /** `online` no longer waits for the entry. Deletes it when nothing is wanted and the broker holds nothing. */
  #conclude(entry: Entry): void {
    if (entry.awaited) {
      entry.awaited = false
      this.awaiting -= 1
    }
    if (entry.released) return
    if (entry.wanted === null && entry.held === null && entry.sent === undefined) this.#entries.delete(entry.topic)
  }

  #unblock(entry: Entry): void {
    if (entry.blocked === undefined) return
    entry.blocked = undefined
    this.blocked -= 1
  }
}

/** No payload: an empty one clears a topic. */
const OTHER = ''

/** What is kept of a payload: itself, or its digest if its source can give it again. */
function kept(payload: string | null, { marked }: Pick<Entry, 'marked'>): string | null {
  return payload === null || !marked ? payload : digest(payload)
}

/** From now on its payloads are kept as marks. */
function markAll(entry: Entry): void {
  entry.marked = true
  entry.text = entry.wanted ?? undefined
  entry.wanted = kept(entry.wanted, entry)
  entry.held = entry.held && kept(entry.held, entry)
  entry.sent = entry.sent && kept(entry.sent, entry)
}

/** The broker has what is wanted: if its source can give it again, it need not be kept. */
function spare(entry: Entry): void {
  if (entry.source !== undefined && entry.held === entry.wanted) entry.text = undefined
}
