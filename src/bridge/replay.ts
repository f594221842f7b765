/** Remembers the outcome of commands, so that a repeated command is answered and not executed again. */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { Message } from '../mqtt/types.ts'

const MEMORY_MS = 5 * 60_000
/** The oldest reads beyond this number are forgotten, because reads may run again. */
const MAX_READS = 20_000
/** Beyond this number, writes are refused, because none may be forgotten. They need 50 MB, or 100 MB if all failed. */
const MAX_WRITES = 100_000
/** Maximum total length of the data of all reads; writes have the same limit. A character may take two bytes. */
const MAX_DATA_LENGTH = (8 * 1024 * 1024) / 2

/** Errors that are not remembered, because nothing was done and the client should try again. */
const TRY_AGAIN: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited', 'retained'])

interface Entry {
  readonly key: string
  outcome: Promise<Outcome>
  readonly at: number
  length: number
}

class EntryQueue {
  readonly entries = new Map<string, Entry>()
  length = 0
  #oldest: Entry | undefined
  /** An iterator past `#oldest`. It is reused, because a new iterator would visit all deleted entries again. */
  #inOrder = this.entries.values()

  delete(key: string): void {
    this.length -= this.entries.get(key)?.length ?? 0
    this.entries.delete(key)
  }

  deleteOldest(mayDelete: (oldest: Entry) => boolean): void {
    for (;;) {
      while (this.#oldest === undefined || this.entries.get(this.#oldest.key) !== this.#oldest) {
        this.#oldest = this.#inOrder.next().value
        if (this.#oldest !== undefined) continue
        // All entries are deleted, and the iterator is at its end.
        this.#inOrder = this.entries.values()
        return
      }
      if (!mayDelete(this.#oldest)) return
      this.delete(this.#oldest.key)
    }
  }
}

export class Replay {
  readonly #clock: Clock
  readonly #writes = new EntryQueue()
  /** Contains the reads, and the writes that sent no request to the hub, because these commands may run again. */
  readonly #reads = new EntryQueue()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get hasRoom(): boolean {
    this.#trim()
    return this.#writes.entries.size < MAX_WRITES
  }

  /** Returns the outcome of an earlier command, which may still be running. */
  recall(key: string): Promise<Outcome> | undefined {
    const entry = this.#writes.entries.get(key) ?? this.#reads.entries.get(key)
    return entry === undefined || this.#isOld(entry) ? undefined : entry.outcome
  }

  /** @param isWriteSent for a write, returns whether a request to change something was sent to the hub */
  remember(key: string, outcome: Promise<Outcome>, isWriteSent?: () => boolean): void {
    const entry: Entry = { key, outcome, at: this.#clock.elapsed(), length: 0 }
    const line = isWriteSent === undefined ? this.#reads : this.#writes
    this.#writes.delete(key)
    this.#reads.delete(key)
    line.entries.set(key, entry)
    this.#trim()
    void outcome.then((result) => {
      if (line.entries.get(key) !== entry) return
      if (result.ok) this.#keepData(entry, line, result.json)
      else {
        const isRetried = TRY_AGAIN.has(result.error.code)
        const isHarmless = isWriteSent?.() === false
        if (isRetried || isHarmless) line.delete(key)
        if (!isRetried && isHarmless) this.#reads.entries.set(key, entry)
      }
      this.#trim()
    })
  }

  #keepData(entry: Entry, line: EntryQueue, json: string): void {
    const { length } = json
    if (json === 'null') return
    if (line === this.#writes && line.length + length > MAX_DATA_LENGTH) entry.outcome = NO_DATA
    else if (length > MAX_DATA_LENGTH) line.delete(entry.key)
    else {
      entry.length = length
      line.length += length
    }
  }

  #isOld({ at }: Entry): boolean {
    return at <= this.#clock.elapsed() - MEMORY_MS
  }

  #trim(): void {
    const reads = this.#reads
    this.#writes.deleteOldest((entry) => this.#isOld(entry))
    reads.deleteOldest(
      (entry) => this.#isOld(entry) || reads.entries.size > MAX_READS || reads.length > MAX_DATA_LENGTH,
    )
  }
}

const NO_DATA: Promise<Outcome> = Promise.resolve({ ok: true, json: 'null' })

/** Longer keys are stored as a hash. A hash contains no NUL, so it cannot equal a plain key. */
const LONGEST_TEXT = 128

/**
 * `consult` means that the command may be a repetition. Without a transaction or correlation data, the payload
 * identifies a redelivered message (`dup`). A topic contains no NUL, so keys are unambiguous.
 */
export function replayKey(
  { topic, payload, dup, correlationData }: Message,
  transaction: string | number | null,
): { text: string; consult: boolean } {
  const isMarked = transaction !== null || correlationData !== undefined
  const kind = transaction !== null ? typeof transaction : isMarked ? 'correlation' : 'bytes'
  const text = `${topic}\0${kind}\0${transaction ?? (correlationData ?? payload).toString('latin1')}`
  return { text: text.length <= LONGEST_TEXT ? text : hash('sha256', text, 'base64'), consult: isMarked || dup }
}
