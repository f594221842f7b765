/** Remembers what became of a command, so that the same one again is answered and not executed. */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { Message } from '../mqtt/types.ts'

const MEMORY_MS = 5 * 60_000
const MAX_ENTRIES = 20_000
/** For all data together; only reads have any, and those may run again. A character may take two bytes. */
const MAX_DATA_LENGTH = (8 * 1024 * 1024) / 2

/** These say that nothing was done and that trying again is right, so trying again must be possible. */
const TRY_AGAIN: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'rate_limited', 'retained'])

interface Entry {
  readonly key: string
  readonly outcome: Promise<Outcome>
  readonly at: number
  /** Length of the data in the answer. */
  length: number
  isForgotten: boolean
}

export class Replay {
  readonly #clock: Clock
  /** In the order of their time. */
  readonly #entries = new Map<string, Entry>()
  /** Stands behind `#oldest`: from the start of the map, each look would step over all that was forgotten since it grew. */
  #inOrder = this.#entries.values()
  #oldest: Entry | undefined
  /** Those with data in their answer, in the order in which it came. */
  readonly #withData = new Map<string, Entry>()
  #dataLength = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The outcome of the same command, also while it is still under way. */
  recall(key: string): Promise<Outcome> | undefined {
    this.#forgetOld()
    return this.#entries.get(key)?.outcome
  }

  remember(key: string, outcome: Promise<Outcome>): void {
    const entry: Entry = { key, outcome, at: this.#clock.elapsed(), length: 0, isForgotten: false }
    this.#forget(key)
    this.#entries.set(key, entry)
    this.#forgetOld()
    void outcome.then((result) => {
      if (entry.isForgotten) return
      if (!result.ok && TRY_AGAIN.has(result.error.code)) this.#forget(key)
      if (result.ok && result.json !== 'null') this.#count(entry, result.json.length)
    })
  }

  #count(entry: Entry, length: number): void {
    if (length > MAX_DATA_LENGTH) {
      this.#forget(entry.key)
      return
    }
    entry.length = length
    this.#withData.set(entry.key, entry)
    this.#dataLength += length
    for (const oldest of this.#withData.keys()) {
      if (this.#dataLength <= MAX_DATA_LENGTH) return
      this.#forget(oldest)
    }
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    entry.isForgotten = true
    this.#dataLength -= entry.length
    this.#entries.delete(key)
    this.#withData.delete(key)
  }

  #forgetOld(): void {
    const oldest = this.#clock.elapsed() - MEMORY_MS
    for (let entry = this.#findOldest(); entry !== undefined; entry = this.#findOldest()) {
      if (entry.at > oldest && this.#entries.size <= MAX_ENTRIES) return
      this.#forget(entry.key)
    }
  }

  #findOldest(): Entry | undefined {
    while (this.#oldest === undefined || this.#oldest.isForgotten) {
      this.#oldest = this.#inOrder.next().value
      if (this.#oldest === undefined) {
        // All are forgotten, and this iterator has come to its end.
        this.#inOrder = this.#entries.values()
        return undefined
      }
    }
    return this.#oldest
  }
}

/**
 * What makes two messages the same command: the asker's own mark, or, where there is none, being sent again by the
 * broker (`dup`), which repeats the bytes.
 */
export function replayKey(
  { topic, payload, dup, correlationData }: Message,
  transaction: string | number | null,
): { text: string; consult: boolean } {
  if (transaction !== null) return { text: textOf(topic, typeof transaction, String(transaction)), consult: true }
  if (correlationData !== undefined) return { text: textOf(topic, 'correlation', correlationData), consult: true }
  return { text: textOf(topic, 'bytes', payload), consult: dup }
}

/** Longer texts are kept as their hash, which holds no NUL and is none of the others. */
const LONGEST_TEXT = 128

/** Short, whatever was sent: thousands of these are kept. A topic holds no NUL, so no two run into each other. */
function textOf(topic: string, kind: string, mark: string | Buffer): string {
  const text = `${topic}\0${kind}\0${typeof mark === 'string' ? mark : mark.toString('latin1')}`
  return text.length <= LONGEST_TEXT ? text : hash('sha256', text, 'base64')
}
