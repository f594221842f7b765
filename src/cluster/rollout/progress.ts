/** A rollout as it changes, and what of it the broker has. */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import type { Rollout } from '../../contract/rollout.ts'
import { type RolloutEvent, reduce } from './machine.ts'

/** Rings for all who wait. */
export class Notice {
  #next = Promise.withResolvers<void>()

  ring(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  /** Resolves when it rings for the next time. */
  next(): Promise<void> {
    return this.#next.promise
  }
}

export class Progress {
  /** Rings at each change, and when the broker has one. */
  readonly changed = new Notice()
  readonly #clock: Clock
  #value: Rollout
  #recorded: Rollout | undefined

  /** @param value as the broker has it */
  constructor(value: Rollout, clock: Clock) {
    this.#value = value
    this.#recorded = value
    this.#clock = clock
  }

  get value(): Rollout {
    return this.#value
  }

  apply(event: RolloutEvent): void {
    const next = reduce(this.#value, event)
    if (next === this.#value) return
    this.#value = { ...next, updated_at: new Date(this.#clock.now()).toISOString() }
    this.changed.ring()
  }

  /** After a lost connection the broker holds this record, or none. */
  readBack(found: Rollout | undefined): void {
    this.#recorded = isDeepStrictEqual(found, this.#value) ? this.#value : undefined
  }

  /** Resolves when the broker has all that is known. */
  async recorded(): Promise<void> {
    while (this.#recorded !== this.#value) await this.changed.next()
  }

  /** Writes each change, the newest only where several wait. @throws what `write` throws */
  async keepRecorded(write: (rollout: Rollout) => Promise<void>, signal: AbortSignal): Promise<never> {
    for (;;) {
      signal.throwIfAborted()
      const value = this.#value
      if (this.#recorded === value) await this.changed.next()
      else {
        await write(value)
        this.#recorded = value
        this.changed.ring()
      }
    }
  }
}
