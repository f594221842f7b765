/** Merges all waiting items into one sequence: the state topic, retained topics, events and answers. */
import type { Outgoing } from './outbox.ts'
import type { Entry } from './retained.ts'
import type { SenderOptions } from './sender.ts'

interface State {
  readonly kind: 'state'
  readonly topic: string
  readonly payload: 'online' | 'offline'
  losses: number
  sentAt: number
  readonly sentBytes: number
}

export type Item = Entry | Outgoing | State

export class Sequence {
  readonly #options: SenderOptions
  /** The last payload taken for the state topic on this connection. */
  state: State['payload'] | undefined
  writing = true
  closing = false
  #answeredLast = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** Returns the next item, which stays queued until `take`. The state topic comes first. */
  next(): Item | undefined {
    const { retained, answers, stateTopic } = this.#options
    const answer = answers.peek()
    const state = this.closing ? 'offline' : retained.awaiting === 0 ? 'online' : this.state
    if (this.writing && state !== undefined && state !== this.state) {
      // While closing, answers precede `offline`. If the broker is too slow, it publishes the will (`offline`).
      if (this.closing && answer !== undefined) return answer
      return { kind: 'state', topic: stateTopic, payload: state, losses: 0, sentAt: 0, sentBytes: state.length }
    }
    // Answers and other items take turns, so that neither delays the other.
    if (answer !== undefined && !this.#answeredLast) return answer
    return this.#earliest() ?? answer
  }

  /** Returns the retained topic or event that was queued first. Drops events that must not be published. */
  #earliest(): Entry | Outgoing | undefined {
    const { retained, events, mayPublish } = this.#options
    for (;;) {
      const entry = this.writing ? retained.peek() : undefined
      const event = events.peek()
      const item = event === undefined || (entry !== undefined && entry.seq < event.seq) ? entry : event
      if (item === undefined || mayPublish === undefined || mayPublish(item.topic)) return item
      if (item.kind === 'retained') return undefined
      events.take()
    }
  }

  may(item: Item): boolean {
    const isAnswer = item.kind === 'message' && item.isAnswer
    return (item.kind === 'message' || this.writing) && (isAnswer || (this.#options.mayPublish?.(item.topic) ?? true))
  }

  /** Removes an item from its queue, and returns its payload. @param again whether it was taken before, but not sent */
  take(item: Item, again: boolean): string {
    const { retained, events, answers, onAnswer } = this.#options
    this.#answeredLast = item.kind === 'message' && item.isAnswer
    if (item.kind === 'retained') {
      const payload = retained.take(item) ?? ''
      item.sentBytes = Buffer.byteLength(payload)
      return payload
    }
    if (item.kind === 'state') this.state = item.payload
    else if (!again) (item.isAnswer ? answers : events).take()
    if (this.#answeredLast) onAnswer()
    return item.payload
  }

  restore(items: readonly Item[], putBack: (entry: Entry) => void): void {
    for (const item of items) if (item.kind === 'retained') putBack(item)
    const messages = items.filter((item) => item.kind === 'message')
    this.#options.events.restore(messages.filter(({ isAnswer }) => !isAnswer))
    this.#options.answers.restore(messages.filter(({ isAnswer }) => isAnswer))
  }
}
