/** Messages on the broker that this link does not hold, from an earlier run of this program or from other clients. */
import { hash } from 'node:crypto'

/** Returns the digest of a payload that is only compared, because many large payloads would take too much memory. */
export const digest = (payload: string): string => hash('sha256', payload, 'base64')

/** Maximum total length of the texts, in UTF-16 code units. Beyond this limit, only digests are kept. */
const TEXT_LIMIT = 64 * 1024 * 1024

interface Found {
  readonly text?: string
  readonly mark?: string
}

export class Unowned {
  readonly #found = new Map<string, Found>()
  readonly all: ReadonlyMap<string, Found> = this.#found
  #length = 0

  /** Adds a message. @param found contains a `mark` (the digest) if the text is no longer known */
  add(topic: string, { text = '', mark }: Found): void {
    this.take(topic, null)
    const keep = mark === undefined && this.#length + text.length <= TEXT_LIMIT
    if (keep) this.#length += text.length
    this.#found.set(topic, keep ? { text } : { mark: mark ?? digest(text) })
  }

  /** Removes a topic. Returns whether its text was `payload`. */
  take(topic: string, payload: string | null): boolean {
    const found = this.#found.get(topic)
    if (found === undefined) return false
    this.#found.delete(topic)
    this.#length -= found.text?.length ?? 0
    if (payload === null) return false
    return found.mark === undefined ? found.text === payload : found.mark === digest(payload)
  }

  clear(): void {
    this.#found.clear()
    this.#length = 0
  }
}
