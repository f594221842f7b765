/** Who listens from inside the hub, by the URI of what sends. */
export type Listener = (event: string, payload: unknown) => void

export class Events {
  readonly #listeners = new Map<string, Set<Listener>>()

  /** Returns how to end it; safe twice. */
  listen(uri: string, listener: Listener): () => void {
    // A listener of its own for each call, so that ending one subscription leaves an equal one alone.
    const own: Listener = (event, payload) => listener(event, payload)
    const listeners = this.#listeners.get(uri) ?? new Set()
    this.#listeners.set(uri, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && this.#listeners.get(uri) === listeners) this.#listeners.delete(uri)
    }
  }

  tell(uri: string, event: string, payload: unknown): void {
    for (const listener of [...(this.#listeners.get(uri) ?? [])]) listener(event, payload)
  }
}
