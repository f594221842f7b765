/** Remembers what became of a command, so that the same one again is answered and not executed. */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Outcome } from '../contract/answer.ts'
import type { ErrorCode } from '../contract/errors.ts'
import type { Message } from '../mqtt/types.ts'

const MEMORY_MS = 5 * 60_000
const MAX_ENTRIES = 20_000
/** Answers with data in them, which came from the hub and may be large: only reads have any, and those may run again. */
const MAX_WITH_DATA = 64

/** These say that nothing was done and that trying again is right, so trying again must be possible. */
const TRY_AGAIN: ReadonlySet<ErrorCode> = new Set(['busy', 'expired', 'hub_unreachable', 'retained'])

interface Entry {
  readonly outcome: Promise<Outcome>
  readonly at: number
}

export class Replay {
  readonly #clock: Clock
  /** In the order of their time. */
  readonly #entries = new Map<string, Entry>()
  readonly #withData: string[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The outcome of the same command, also while it is still under way. */
  recall(key: string): Promise<Outcome> | undefined {
    this.#forgetOld()
    return this.#entries.get(key)?.outcome
  }

  remember(key: string, outcome: Promise<Outcome>): void {
    this.#entries.set(key, { outcome, at: this.#clock.elapsed() })
    void outcome.then((result) => {
      if (!result.ok && TRY_AGAIN.has(result.error.code)) this.#entries.delete(key)
      if (result.ok && result.data !== null) this.#limitData(key)
    })
  }

  #limitData(key: string): void {
    this.#withData.push(key)
    if (this.#withData.length > MAX_WITH_DATA) this.#entries.delete(this.#withData.shift() ?? '')
  }

  #forgetOld(): void {
    const oldest = this.#clock.elapsed() - MEMORY_MS
    for (const [key, { at }] of this.#entries) {
      if (at > oldest && this.#entries.size <= MAX_ENTRIES) return
      this.#entries.delete(key)
    }
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
  if (transaction !== null) return { text: digest(topic, typeof transaction, String(transaction)), consult: true }
  if (correlationData !== undefined) return { text: digest(topic, 'correlation', correlationData), consult: true }
  return { text: digest(topic, 'bytes', payload), consult: dup }
}

/** Short, whatever was sent: thousands of these are kept. A topic holds no NUL, so no two run into each other. */
function digest(topic: string, kind: string, mark: string | Buffer): string {
  const text = typeof mark === 'string' ? mark : mark.toString('latin1')
  return hash('sha256', `${topic}\0${kind}\0${text}`, 'base64')
}
