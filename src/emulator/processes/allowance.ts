/** An amount that may be used per second. When it is used up, the caller waits for the next second. */
import type { Clock } from '../../base/clock.ts'

const SECOND_MS = 1000

export class Allowance {
  readonly #perSecond: number
  readonly #clock: Clock
  readonly #refilled: () => void
  #used = 0
  #since: number
  #cancel: (() => void) | undefined

  /** @param refilled - Called when the used-up amount is available again. */
  constructor(perSecond: number, clock: Clock, refilled: () => void) {
    this.#perSecond = perSecond
    this.#clock = clock
    this.#refilled = refilled
    this.#since = clock.elapsed()
  }

  get exhausted(): boolean {
    return this.#cancel !== undefined
  }

  use(amount: number): void {
    const now = this.#clock.elapsed()
    if (now - this.#since >= SECOND_MS) this.#refill(now)
    this.#used += amount
    if (this.#used < this.#perSecond || this.#cancel !== undefined) return
    this.#cancel = this.#clock.after(this.#since + SECOND_MS - now, () => {
      this.#cancel = undefined
      this.#refill(this.#clock.elapsed())
      this.#refilled()
    })
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #refill(now: number): void {
    this.#since = now
    this.#used = 0
  }
}
