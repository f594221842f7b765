/** Puts right what others change on topics of ours: soon, in one go, and never in a race with another writer. */
import type { Clock } from '../base/clock.ts'

export interface RepairsOptions {
  /** Sends again what is held on these topics, and clears what others have left. */
  readonly repair: (topics: ReadonlySet<string>) => void
  /** More was changed than is remembered: everything that the broker holds is to be read. */
  readonly readEverything: () => void
  readonly clock: Clock
}

/** What others change in a row is put right together. */
const SOON_MS = 500
/** Somebody who writes the same again and again is answered this often. */
const INTERVAL_MS = 4_000
const MAX_TOPICS = 10_000

export class Repairs {
  readonly #options: RepairsOptions
  #touched = new Set<string>()
  #tooMany = false
  #repairedAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  constructor(options: RepairsOptions) {
    this.#options = options
  }

  /** Somebody else has published on a topic of ours. */
  touched(topic: string): void {
    if (this.#touched.size < MAX_TOPICS) this.#touched.add(topic)
    else this.#tooMany = true
    const { clock } = this.#options
    const wait = Math.max(SOON_MS, this.#repairedAt + INTERVAL_MS - clock.elapsed())
    this.#cancel ??= clock.after(wait, () => this.now())
  }

  /** Puts right at once what is not as it should be. */
  now(): void {
    const { repair, readEverything, clock } = this.#options
    const [touched, tooMany] = [this.#touched, this.#tooMany]
    this.stop()
    if (touched.size === 0) return
    this.#repairedAt = clock.elapsed()
    if (tooMany) readEverything()
    else repair(touched)
  }

  /** Forgets what was changed. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#touched = new Set()
    this.#tooMany = false
  }
}
