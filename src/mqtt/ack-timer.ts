/** Watches for missing acknowledgements with one timer, which a publish costs nothing while it runs. */
import type { Clock } from '../base/clock.ts'

export class AckTimer {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #oldestSentAt: () => number | undefined
  readonly #onTimeout: () => void
  #cancel: (() => void) | undefined

  /** `oldestSentAt`: when the oldest unacknowledged publish was sent, by `clock.elapsed()`; undefined: there is none. */
  constructor(clock: Clock, timeoutMs: number, oldestSentAt: () => number | undefined, onTimeout: () => void) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#oldestSentAt = oldestSentAt
    this.#onTimeout = onTimeout
  }

  /** Call it after each publish. */
  sent(): void {
    if (this.#cancel === undefined) this.#wait(this.#timeoutMs)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Acknowledgements do not touch the timer. When it fires, the oldest publish decides how long to go on waiting. */
  #wait(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => {
      this.#cancel = undefined
      const sentAt = this.#oldestSentAt()
      if (sentAt === undefined) return
      const left = sentAt + this.#timeoutMs - this.#clock.elapsed()
      if (left > 0) this.#wait(left)
      else this.#onTimeout()
    })
  }
}
