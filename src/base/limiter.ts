/** Admission: what may begin, and when. A few at a time, apart from each other, and nothing waits without bound. */
import type { Clock } from './clock.ts'

export interface Limits {
  /** How many may be under way at once. */
  readonly slots: number
  /** Least time between two beginnings, in milliseconds; default 0. */
  readonly apartMs?: number
}

export interface LimiterOptions extends Limits {
  readonly clock: Clock
  /** How many may wait in one lane; default: any number. */
  readonly maxWaiting?: number
  /** How long work keeps a slot without saying that it goes well, in milliseconds; default: until it ends. */
  readonly patienceMs?: number
  /** The errors thrown if too many wait, and if the deadline passes. */
  readonly refusal?: (why: 'busy' | 'expired') => Error
}

/** What asks for a slot. */
export interface Turn {
  /** Tasks of one lane run one after another, in order. Lanes take turns. Default: no lane; only the order counts. */
  readonly lane?: string
  /** In `clock.elapsed()` milliseconds: what has not begun by then never does. */
  readonly deadline?: number
  /** Ends the wait: the work begins without a slot, and fails by itself. */
  readonly signal?: AbortSignal
}

/** The right to be under way. */
export interface Slot {
  /** Whether the deadline has passed meanwhile. */
  isLate(): boolean
  /** The work goes well: it keeps its slot. */
  keep(): void
  /** Frees the slot early, so that other work can start. */
  leave(): void
}

export class Limiter {
  readonly #options: LimiterOptions
  readonly #clock: Clock
  #limits: Limits
  /** Until when the limits are those of `restrict`, in `clock.elapsed()` milliseconds. */
  #restrictedUntil = 0
  #underWay = 0
  #begunAt = Number.NEGATIVE_INFINITY
  /** Lanes with something under way. */
  readonly #busy = new Set<string | undefined>()
  /** What waits, by lane and in order, as functions that begin it. The next lane comes first; no lane is empty. */
  readonly #waiting = new Map<string | undefined, Set<() => void>>()
  /** Cancels the timer that looks again when the next may begin. */
  #timer: (() => void) | undefined

  constructor(options: LimiterOptions) {
    this.#options = options
    this.#limits = options
    this.#clock = options.clock
  }

  /** Other limits for so long, from now on. */
  restrict(limits: Limits, ms: number): void {
    this.#limits = limits
    this.#restrictedUntil = this.#clock.elapsed() + ms
  }

  /**
   * Does the work as soon as it may begin: at once if nothing waits and a slot is free.
   * @throws what `refusal` makes of `busy` and `expired`
   */
  async run<T>(turn: Turn, work: (slot: Slot) => Promise<T>): Promise<T> {
    const { lane, deadline = Number.POSITIVE_INFINITY } = turn
    const isLate = () => this.#clock.elapsed() >= deadline
    if (isLate()) throw this.#refusal('expired')
    const isFirst = this.#waiting.size === 0 && !this.#busy.has(lane) && this.#delay() === 0
    if (isFirst) this.#begin(lane)
    let isHeld = isFirst || (await this.#wait(turn))
    const leave = () => {
      if (!isHeld) return
      isHeld = false
      this.#underWay -= 1
      this.#busy.delete(lane)
      if (this.#waiting.size > 0) this.#admit()
    }
    const { patienceMs } = this.#options
    const keep = patienceMs === undefined ? () => {} : this.#clock.after(patienceMs, leave)
    try {
      // Its turn may come with its deadline.
      if (isLate()) throw this.#refusal('expired')
      return await work({ isLate, keep, leave })
    } finally {
      keep()
      leave()
    }
  }

  /** Waits until the work may begin. Resolves with whether it has a slot. */
  async #wait({ lane, deadline, signal }: Turn): Promise<boolean> {
    if (signal?.aborted) return false
    const { maxWaiting = Number.POSITIVE_INFINITY } = this.#options
    const waiting = this.#waiting.get(lane) ?? new Set()
    if (waiting.size >= maxWaiting) throw this.#refusal('busy')
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const begin = () => resolve(true)
    const giveUp = () => {
      // One that has begun was taken out before.
      if (waiting.delete(begin) && waiting.size === 0) this.#waiting.delete(lane)
      resolve(false)
    }
    const expire = () => {
      reject(this.#refusal('expired'))
      giveUp()
    }
    const left = deadline === undefined ? undefined : Math.max(0, deadline - this.#clock.elapsed())
    const cancel = left === undefined ? undefined : this.#clock.after(left, expire)
    signal?.addEventListener('abort', giveUp)
    this.#waiting.set(lane, waiting.add(begin))
    this.#admit()
    try {
      return await promise
    } finally {
      cancel?.()
      signal?.removeEventListener('abort', giveUp)
    }
  }

  /** Begins what may begin now, each lane in turn. */
  #admit(): void {
    for (const [lane, waiting] of this.#waiting) {
      const delay = this.#delay()
      // What ends looks again.
      if (delay === Number.POSITIVE_INFINITY) return
      if (delay > 0) {
        this.#timer ??= this.#clock.after(delay, () => {
          this.#timer = undefined
          this.#admit()
        })
        return
      }
      const [begin] = waiting
      if (begin === undefined || this.#busy.has(lane)) continue
      this.#begin(lane)
      begin()
      // To the back of the line, so that one lane cannot keep the others waiting.
      this.#waiting.delete(lane)
      if (waiting.delete(begin) && waiting.size > 0) this.#waiting.set(lane, waiting)
    }
  }

  /** For how long nothing may begin, in milliseconds; `Infinity` until something ends. */
  #delay(): number {
    const now = this.#clock.elapsed()
    if (now >= this.#restrictedUntil) this.#limits = this.#options
    const { slots, apartMs = 0 } = this.#limits
    return this.#underWay >= slots ? Number.POSITIVE_INFINITY : Math.max(0, this.#begunAt + apartMs - now)
  }

  #begin(lane: string | undefined): void {
    this.#underWay += 1
    this.#begunAt = this.#clock.elapsed()
    if (lane !== undefined) this.#busy.add(lane)
  }

  #refusal(why: 'busy' | 'expired'): Error {
    return this.#options.refusal?.(why) ?? new Error(why)
  }
}
