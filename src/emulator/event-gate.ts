import type { Behaviours } from './behaviours.ts'

type Send = (uri: string, event: string, payload: unknown) => void

/** What becomes of an event between the hub and its listeners: lost, doubled, late or simply sent. */
export class EventGate {
  readonly #behaviours: Behaviours
  readonly #send: Send
  #held: (() => void) | undefined

  constructor(behaviours: Behaviours, send: Send) {
    this.#behaviours = behaviours
    this.#send = send
  }

  pass(uri: string, event: string, payload: unknown): void {
    if (this.#behaviours.claim('realtime-silent', event) ?? this.#behaviours.claim('lose-events', event)) return
    const send = () => this.#send(uri, event, payload)
    if (this.#held === undefined && this.#behaviours.claim('reorder-events', event)) {
      this.#held = send
      return
    }
    send()
    if (this.#behaviours.claim('duplicate-events', event)) send()
    this.flush()
  }

  /** Sends an event that still waits for another to overtake it. */
  flush(): void {
    const held = this.#held
    this.#held = undefined
    held?.()
  }
}
