/** Requests as a hub that limits them likes them: few at once and spaced, from its first complaint on. */
import { type Clock, sleep } from '../base/clock.ts'

const AT_ONCE = 2
const APART_MS = 150
/** After so long without a complaint requests go out as before. */
const MEMORY_MS = 10 * 60_000

export class Spacing {
  readonly #clock: Clock
  readonly #ending = new AbortController()
  readonly #waiting: (() => void)[] = []
  #underWay = 0
  /** When the next request may go out, in `clock.elapsed()` milliseconds. */
  #nextAt = 0
  #complainedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The hub has answered 429. */
  complained(): void {
    this.#complainedAt = this.#clock.elapsed()
  }

  async run<T>(request: () => Promise<T>): Promise<T> {
    if (this.#active) await this.#turn()
    this.#underWay += 1
    try {
      return await request()
    } finally {
      this.#underWay -= 1
      this.#waiting.shift()?.()
    }
  }

  /** Lets all that wait go on: their requests fail by themselves. */
  end(): void {
    this.#ending.abort()
    for (const go of this.#waiting.splice(0)) go()
  }

  get #active(): boolean {
    return !this.#ending.signal.aborted && this.#clock.elapsed() - this.#complainedAt < MEMORY_MS
  }

  async #turn(): Promise<void> {
    while (this.#active) {
      const wait = this.#nextAt - this.#clock.elapsed()
      if (this.#underWay >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
      else if (wait > 0) await sleep(this.#clock, wait, this.#ending.signal)
      else break
    }
    this.#nextAt = this.#clock.elapsed() + APART_MS
  }
}
