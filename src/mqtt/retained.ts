/**
 * Tracks the retained messages that the broker should have, its copies, and the updates in flight. Sends nothing and
 * reads no clock.
 */
import { Fifo } from './fifo.ts'
import type { Redact } from './types.ts'
import { digest, Unowned } from './unowned.ts'

/** Shared by all queues, so that retained topics and messages are sent in the order in which they were queued. */
export interface Order {
  next: number
}

/**
 * Why a topic is not sent. A new payload ends every block except `invalid`. A new connection also ends `denied` and
 * `too_large`; `retry` also ends `quarantined` and `too_large`.
 */
export type Block = 'invalid' | 'too_large' | 'denied' | 'quarantined'

/**
 * Returns a topic's payload again, or `undefined` if nothing is held. Share a source among many topics, to save memory.
 */
export type PayloadSource = (topic: string) => string | undefined

/** The payload that a topic should have, and the broker's copy. */
export class Entry {
  readonly kind = 'retained'
  readonly topic: string
  /** Whether `wanted`, `held` and `sent` are digests; set when the first payload with a source is held. */
  marked: boolean
  source: PayloadSource | undefined
  /** The text whose digest is `wanted`. It is dropped once the broker has it, if the source can return it again. */
  text: string | undefined
  /** The payload that the broker should have; `null` for none. */
  wanted: string | null
  /** The broker's copy; `null` if there is none, `undefined` if unknown, `OTHER` if it may differ from `wanted`. */
  held: string | null | undefined = undefined
  sent: string | null | undefined = undefined
  seq = 0
  queued = false
  awaited = false
  /** Number of consecutive connections that were lost while a publish to this topic was unacknowledged. */
  losses = 0
  sentAt = 0
  sentBytes = 0
  blocked: Block | undefined = undefined
  /** The latest reported block; `undefined` after the broker has accepted a publish. */
  reported: Block | undefined = undefined
  /** Whether another client has taken over the topic. */
  released = false

  constructor(topic: string, payload: string | null, source: PayloadSource | undefined) {
    this.topic = topic
    this.marked = source !== undefined
    this.source = source
    this.text = this.marked ? (payload ?? undefined) : undefined
    this.wanted = textOrDigest(payload, this)
  }
}

export class Retained {
  blocked = 0
  /** Number of entries that delay `online`: they differed at `settle`, and are not yet acknowledged or blocked. */
  awaiting = 0
  readonly #order: Order
  readonly #delaysOnline: (topic: string) => boolean
  readonly #redact: Redact
  readonly #clearIfTooLarge: (topic: string) => boolean
  readonly #isCommand: (topic: string) => boolean
  readonly #entries = new Map<string, Entry>()
  readonly #queue = new Fifo<Entry>()
  readonly #unowned = new Unowned()
  /** Returns whether the broker's copy of a topic has been read back. */
  #isReadBack: (topic: string) => boolean = () => false
  /** Topics that were cleared on this connection without being read back. They need not be cleared again. */
  readonly #cleared = new Set<string>()

  /**
   * @param redact applied to the payloads of a source; payloads passed to `hold` are already redacted
   * @param isCommand returns whether other clients publish on the topic, so that it must be cleared each time
   */
  constructor(
    order: Order,
    delaysOnline: (topic: string) => boolean = () => true,
    redact: Redact = (text) => text,
    clearIfTooLarge: (topic: string) => boolean = () => false,
    isCommand: (topic: string) => boolean = () => false,
  ) {
    this.#order = order
    this.#delaysOnline = delaysOnline
    this.#redact = redact
    this.#clearIfTooLarge = clearIfTooLarge
    this.#isCommand = isCommand
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** Sets the payload that the broker should have. Returns whether it must be sent. */
  hold(topic: string, payload: string | null, source?: PayloadSource): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined) {
      const made = this.#create(topic, payload, source)
      return made !== undefined && this.#enqueue(made)
    }
    if (source !== undefined && !entry.marked) markAll(entry)
    entry.source = source
    const wanted = textOrDigest(payload, entry)
    if (entry.wanted === wanted) {
      // Keep the text, because no source can return it again.
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

  /** Creates the entry of a topic. Returns `undefined` if there is nothing to hold or clear. */
  #create(topic: string, payload: string | null, source?: PayloadSource): Entry | undefined {
    const isCertain = this.#isReadBack(topic) || this.#cleared.has(topic)
    const unowned = this.#unowned.all.has(topic)
    if (payload === null && isCertain && !unowned) return undefined
    const entry = new Entry(topic, payload, source)
    if (unowned) entry.held = this.#unowned.take(topic, payload) ? entry.wanted : OTHER
    else if (isCertain) entry.held = null
    this.#cleared.delete(topic)
    this.#entries.set(topic, entry)
    dropText(entry)
    return entry
  }

  /** See `MqttLink.expect`. */
  expect(topic: string, payload: string | null): () => void {
    const entry = this.#entries.get(topic) ?? this.#create(topic, payload)
    if (entry === undefined) return () => {}
    const wanted = textOrDigest(payload, entry)
    entry.wanted = wanted
    return () => {
      // After a lost connection, the read-back shows what the broker has.
      if (entry.wanted !== wanted || entry.held === undefined) return
      entry.held = wanted
      this.#conclude(entry)
    }
  }

  /** See `MqttLink.sweep`. */
  sweep(owned: (topic: string, payload: string) => boolean): number {
    const found = [...this.#unowned.all].filter(([topic, { text = '' }]) => owned(topic, text))
    for (const [topic] of found) this.hold(topic, null)
    return found.length
  }

  get hasQuarantined(): boolean {
    return this.blocked > 0 && this.#entries.values().some(({ blocked }) => blocked === 'quarantined')
  }

  retry(block: Block, due: (entry: Entry) => boolean = () => true): void {
    for (const entry of this.#entries.values()) {
      if (entry.blocked !== block || !due(entry)) continue
      this.#unblock(entry)
      this.#enqueue(entry)
    }
  }

  refresh(topic: string): void {
    const entry = this.#entries.get(topic)
    if (entry === undefined || entry.wanted === null) return
    // Treat the broker's copy as different, even if a read-back in progress has already found the expected payload.
    entry.held = OTHER
    this.#enqueue(entry)
  }

  /** Stops holding these topics, and treats the broker's copies as read back. */
  release(isOthers: (topic: string) => boolean): void {
    for (const entry of this.#entries.values()) {
      if (!isOthers(entry.topic)) continue
      this.#unblock(entry)
      this.#entries.delete(entry.topic)
      // Mark the entry, because it may still be queued or in flight.
      entry.released = true
      this.#conclude(entry)
      const last = entry.sent === undefined ? entry.held : entry.sent
      if (typeof last !== 'string') continue
      this.#unowned.add(entry.topic, entry.marked ? { mark: last } : { text: last })
    }
  }

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
   * Takes the entry that `peek` returned, or an entry that was taken but not sent. Returns its payload, which the
   * source may have changed; `null` for a zero-length publish.
   */
  take(entry: Entry): string | null {
    if (entry.queued) this.#queue.shift()
    entry.queued = false
    // For a payload that is too large, `#differs` returns `true` only if the topic must be cleared.
    if (entry.blocked === 'too_large') {
      entry.sent = null
      return null
    }
    if (entry.marked && entry.wanted !== null && entry.text === undefined) {
      const again = entry.source?.(entry.topic)
      entry.text = again === undefined ? undefined : this.#redact(again)
      entry.wanted = textOrDigest(entry.text ?? null, entry)
    }
    entry.sent = entry.wanted
    return entry.marked && entry.wanted !== null ? (entry.text ?? null) : entry.wanted
  }

  /** Requeues an entry that was taken but not sent. */
  putBack(entry: Entry): void {
    if (entry.released) return
    entry.sent = undefined
    this.#enqueue(entry)
  }

  acked(entry: Entry): void {
    if (entry.released) return
    entry.held = entry.sent
    if (entry.source !== undefined) dropText(entry)
    entry.sent = undefined
    if (entry.blocked === undefined) entry.reported = undefined
    this.#conclude(entry)
    this.#enqueue(entry)
  }

  /** Blocks an entry. Returns whether to report the block. */
  refused(entry: Entry, block: Block): boolean {
    if (entry.released) return false
    const outdated = entry.sent !== undefined && entry.sent !== entry.wanted && entry.blocked !== 'too_large'
    entry.sent = undefined
    if (entry.blocked === undefined) this.blocked += 1
    const isNew = entry.reported !== block
    entry.reported = block
    entry.blocked = block
    this.#conclude(entry)
    // The refused payload is outdated, and the broker may accept the current payload.
    if (outdated && block !== 'invalid') this.#unblock(entry)
    this.#enqueue(entry)
    return isNew
  }

  /**
   * Records that an entry was in flight when the connection was lost. The broker may or may not have the payload. The
   * entry keeps its place in the order; `settle` requeues it.
   */
  lost(entry: Entry): void {
    if (entry.released) return
    entry.sent = undefined
    entry.held = undefined
    entry.queued = true
  }

  /** Forgets the broker's copies after a lost connection. Call `lost` for every unacknowledged entry first. */
  forget(): void {
    this.#unowned.clear()
    this.#cleared.clear()
    this.#isReadBack = () => false
    for (const entry of this.#entries.values()) entry.held = undefined
  }

  found(topic: string, text: string): void {
    const entry = this.#entries.get(topic)
    if (entry === undefined) {
      this.#unowned.add(topic, { text })
      return
    }
    // If the strings are equal, keep only one in memory. Otherwise, keep the found one, which a later `hold` may match.
    const found = textOrDigest(text, entry)
    entry.held = entry.wanted === found ? entry.wanted : found
    dropText(entry)
  }

  concerns(topic: string): boolean {
    return this.#entries.has(topic) || this.#unowned.all.has(topic)
  }

  /** Returns whether a message that is not retained may be an echo of this link's publish. */
  mayBeOwn(topic: string, text: string): boolean {
    const entry = this.#entries.get(topic)
    if (entry === undefined) return text === '' && !this.#unowned.all.has(topic)
    const payload = textOrDigest(text === '' ? null : text, entry)
    return entry.wanted === payload || entry.sent === payload || entry.held === payload
  }

  /** Records that another client published `text`; only `refresh` sends the expected payload again. */
  changedByOthers(topic: string, text: string): void {
    const entry = this.#entries.get(topic)
    if (entry !== undefined) entry.held = text === '' ? null : undefined
    else if (text === '') this.#unowned.take(topic, null)
    else this.#unowned.add(topic, { text })
  }

  /**
   * Ends the read-back and queues all topics that differ, starting with the topics that delay `online`. If `isReadBack`
   * returns `true` for a topic, the broker holds a message there only if one was found.
   */
  settle(isReadBack: (topic: string) => boolean): void {
    this.#isReadBack = isReadBack
    this.awaiting = 0
    const different: Entry[] = []
    for (const entry of this.#entries.values()) {
      entry.awaited = false
      if (entry.held === undefined && isReadBack(entry.topic)) entry.held = null
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

  /** Returns whether to publish: the broker's copy is wrong, no update is in flight, and no block prevents it. */
  #differs(entry: Entry): boolean {
    if (entry.sent !== undefined || entry.released) return false
    if (entry.blocked === 'too_large') return entry.held !== null && this.#clearIfTooLarge(entry.topic)
    return entry.blocked === undefined && entry.held !== entry.wanted
  }

  #enqueue(entry: Entry): boolean {
    if (entry.queued || !this.#differs(entry)) return false
    entry.queued = true
    entry.seq = this.#order.next++
    this.#queue.push(entry)
    return true
  }

  /** Stops the entry from delaying `online`. Deletes the entry if the broker should have no message and has none. */
  #conclude(entry: Entry): void {
    if (entry.awaited) {
      entry.awaited = false
      this.awaiting -= 1
    }
    if (entry.released) return
    if (entry.wanted !== null || entry.held !== null || entry.sent !== undefined) return
    this.#entries.delete(entry.topic)
    if (!this.#isReadBack(entry.topic) && !this.#isCommand(entry.topic)) this.#cleared.add(entry.topic)
  }

  #unblock(entry: Entry): void {
    if (entry.blocked === undefined) return
    entry.blocked = undefined
    this.blocked -= 1
  }
}

/** Stands for any payload except the expected payload. No payload is '', because an empty payload clears the topic. */
const OTHER = ''

/** Returns the text, or its digest if the source can return the text again. */
function textOrDigest(payload: string | null, { marked }: Pick<Entry, 'marked'>): string | null {
  return payload === null || !marked ? payload : digest(payload)
}

function markAll(entry: Entry): void {
  entry.marked = true
  entry.text = entry.wanted ?? undefined
  entry.wanted = textOrDigest(entry.wanted, entry)
  entry.held = entry.held && textOrDigest(entry.held, entry)
  entry.sent = entry.sent && textOrDigest(entry.sent, entry)
}

function dropText(entry: Entry): void {
  if (entry.source !== undefined && entry.held === entry.wanted) entry.text = undefined
}
