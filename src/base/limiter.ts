/** Limits the concurrency and the rate of tasks; other tasks wait in a bounded queue. */
import type { Clock } from './clock.ts'

export interface Limits {
  readonly slots: number
  /** Minimum time between the starts of two tasks, in milliseconds; default: 0. */
  readonly apartMs?: number
}

export interface LimiterOptions extends Limits {
  readonly clock: Clock
  /** Maximum number of waiting tasks per lane; default: no limit. */
  readonly maxWaiting?: number
  /** How long a task keeps its slot unless it calls `keep`, in milliseconds; default: until the task ends. */
  readonly slotTimeoutMs?: number
  /** While this returns `true`, tasks start at least 50 ms apart, because the process has more urgent work. */
  readonly isBusy?: (() => boolean) | undefined
  /** Creates the error for a refused task: too many tasks wait (`busy`), or its deadline has passed (`expired`). */
  readonly refusal?: (why: 'busy' | 'expired') => Error
}

const BUSY_APART_MS = 50

export interface Turn {
  /** Tasks of a lane run one after another, and lanes take turns. Tasks without a lane only start in order. */
  readonly lane?: string
  /** The latest start, in `clock.elapsed()` milliseconds. A task that is still waiting then is refused. */
  readonly deadline?: number
  /** On abort, a waiting task starts without a slot, so that it can fail with its own error. */
  readonly signal?: AbortSignal
}

export interface Slot {
  isLate(): boolean
  /** Keeps the slot until the task ends, because the task is making progress. */
  keep(): void
  /** Frees the slot early, so that other work can start. */
  leave(): void
}

export class Limiter {
  readonly #options: LimiterOptions
  readonly #clock: Clock
  #limits: Limits
  /** When the limits that `restrict` has set end, in `clock.elapsed()` milliseconds. */
  #restrictedUntil = 0
  #underWay = 0
  #startedAt = Number.NEGATIVE_INFINITY
  readonly #busy = new Set<string | undefined>()
  /** For each lane, the functions that start its waiting tasks, in order. The next lane is first; no lane is empty. */
  readonly #waiting = new Map<string | undefined, Set<() => void>>()
  #timer: (() => void) | undefined

  constructor(options: LimiterOptions) {
    this.#options = options
    this.#limits = options
    this.#clock = options.clock
  }

  /** Replaces the limits for `ms` milliseconds. */
  restrict(limits: Limits, ms: number): void {
    this.#limits = limits
    this.#restrictedUntil = this.#clock.elapsed() + ms
  }

  /** Runs `work` as soon as a slot is free. @throws the error that `refusal` returns */
  async run<T>(turn: Turn, work: (slot: Slot) => Promise<T>): Promise<T> {
    const { lane, deadline = Number.POSITIVE_INFINITY } = turn
    const isLate = () => this.#clock.elapsed() >= deadline
    if (isLate()) throw this.#refusal('expired')
    const isFirst = this.#waiting.size === 0 && !this.#busy.has(lane) && this.#delay() === 0
    if (isFirst) this.#start(lane)
    let hasSlot = isFirst || (await this.#wait(turn))
    const leave = () => {
      if (!hasSlot) return
      hasSlot = false
      this.#underWay -= 1
      this.#busy.delete(lane)
      if (this.#waiting.size > 0) this.#admit()
    }
    const { slotTimeoutMs } = this.#options
    const keep = slotTimeoutMs === undefined ? () => {} : this.#clock.after(slotTimeoutMs, leave)
    try {
      // Check again, because the deadline may have passed while the task was waiting for its slot.
      if (isLate()) throw this.#refusal('expired')
      return await work({ isLate, keep, leave })
    } finally {
      keep()
      leave()
    }
  }

  /** Resolves to whether the task has a slot. */
  async #wait({ lane, deadline, signal }: Turn): Promise<boolean> {
    if (signal?.aborted) return false
    const { maxWaiting = Number.POSITIVE_INFINITY } = this.#options
    const waiting = this.#waiting.get(lane) ?? new Set()
    if (waiting.size >= maxWaiting) throw this.#refusal('busy')
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const start = () => resolve(true)
    const giveUp = () => {
      // A task that has already started is not in the queue.
      if (waiting.delete(start) && waiting.size === 0) this.#waiting.delete(lane)
      resolve(false)
    }
    const expire = () => {
      reject(this.#refusal('expired'))
      giveUp()
    }
    const cancel = deadline === undefined ? undefined : this.#clock.after(deadline - this.#clock.elapsed(), expire)
    signal?.addEventListener('abort', giveUp)
    this.#waiting.set(lane, waiting.add(start))
    this.#admit()
    try {
      return await promise
    } finally {
      cancel?.()
      signal?.removeEventListener('abort', giveUp)
    }
  }

  #admit(): void {
    for (const [lane, waiting] of this.#waiting) {
      const delay = this.#delay()
      // All slots are taken. The next task that ends calls `#admit` again.
      if (delay === Number.POSITIVE_INFINITY) return
      if (delay > 0) {
        this.#timer ??= this.#clock.after(delay, () => {
          this.#timer = undefined
          this.#admit()
        })
        return
      }
      const [start] = waiting
      if (start === undefined || this.#busy.has(lane)) continue
      this.#start(lane)
      start()
      // Move the lane to the end, so that one lane cannot keep the others waiting.
      this.#waiting.delete(lane)
      if (waiting.delete(start) && waiting.size > 0) this.#waiting.set(lane, waiting)
    }
  }

  /** Returns the milliseconds until a task may start; `Infinity` if another task must end first. */
  #delay(): number {
    const now = this.#clock.elapsed()
    if (now >= this.#restrictedUntil) this.#limits = this.#options
    const { slots, apartMs = 0 } = this.#limits
    const apart = this.#options.isBusy?.() ? Math.max(apartMs, BUSY_APART_MS) : apartMs
    return this.#underWay >= slots ? Number.POSITIVE_INFINITY : Math.max(0, this.#startedAt + apart - now)
  }

  #start(lane: string | undefined): void {
    this.#underWay += 1
    this.#startedAt = this.#clock.elapsed()
    if (lane !== undefined) this.#busy.add(lane)
  }

  #refusal(why: 'busy' | 'expired'): Error {
    return this.#options.refusal?.(why) ?? new Error(why)
  }
}
