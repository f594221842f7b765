/**
 * Retained messages that the broker holds and that nobody has wanted or cleared yet: left over from an earlier run of
 * this program, or written by others.
 */

/** In UTF-16 code units, as `length` counts. Beyond it only the topic is kept. */
const TEXT_LIMIT = 64 * 1024 * 1024

export class Unclaimed {
  /** undefined: the text was too much to keep. */
  readonly #texts = new Map<string, string | undefined>()
  #length = 0

  has(topic: string): boolean {
    return this.#texts.has(topic)
  }

  /** Topic and text of each; the text is '' where it was too much to keep. */
  list(): { readonly topic: string; readonly text: string }[] {
    return [...this.#texts].map(([topic, text = '']) => ({ topic, text }))
  }

  add(topic: string, text: string): void {
    this.take(topic)
    const keep = this.#length + text.length <= TEXT_LIMIT
    if (keep) this.#length += text.length
    this.#texts.set(topic, keep ? text : undefined)
  }

  /** Removes a topic and returns its text; undefined if that was not kept. */
  take(topic: string): string | undefined {
    const text = this.#texts.get(topic)
    if (this.#texts.delete(topic)) this.#length -= text?.length ?? 0
    return text
  }

  clear(): void {
    this.#texts.clear()
    this.#length = 0
  }
}
