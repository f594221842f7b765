/** When a command's turn comes: in order for one app, a few at a time for one hub, and never without bound. */
import type { Clock } from '../base/clock.ts'
import { CommandError } from '../contract/errors.ts'

export interface QueueOptions {
  /** Commands of this hub under way at once. */
  readonly concurrency: number
  /** Commands of one app that may wait. */
  readonly maxWaiting: number
}

interface Waiting {
  readonly start: () => void
}

/** The commands of one app; it exists only while there are some. */
interface Lane {
  busy: boolean
  readonly waiting: Waiting[]
}

export class CommandQueue {
  readonly #options: QueueOptions
  readonly #clock: Clock
  readonly #lanes = new Map<string, Lane>()
  #active = 0

  constructor(options: QueueOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  /**
   * Runs `task` when all before it in its lane have ended and a place is free.
   * @param deadline in `clock.elapsed()` milliseconds: not begun by then, it never is
   * @param task is given a way to ask whether the deadline has passed meanwhile
   * @throws CommandError `busy` or `expired`
   */
  async run<T>(laneName: string, deadline: number, task: (isLate: () => boolean) => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(laneName) ?? { busy: false, waiting: [] }
    this.#lanes.set(laneName, lane)
    if (lane.busy || this.#active >= this.#options.concurrency) await this.#turn(lane, deadline)
    else this.#take(lane)
    try {
      const isLate = () => this.#clock.elapsed() >= deadline
      if (isLate()) throw new CommandError('expired')
      return await task(isLate)
    } finally {
      lane.busy = false
      this.#active--
      this.#next()
      if (!lane.busy && lane.waiting.length === 0) this.#lanes.delete(laneName)
    }
  }

  #turn(lane: Lane, deadline: number): Promise<void> {
    if (lane.waiting.length >= this.#options.maxWaiting) throw new CommandError('busy')
    return new Promise((resolve, reject) => {
      const entry: Waiting = {
        start: () => {
          cancel()
          resolve()
        },
      }
      const cancel = this.#clock.after(Math.max(0, deadline - this.#clock.elapsed()), () => {
        lane.waiting.splice(lane.waiting.indexOf(entry), 1)
        reject(new CommandError('expired'))
      })
      lane.waiting.push(entry)
    })
  }

  #take(lane: Lane): void {
    lane.busy = true
    this.#active++
  }

  /** Gives the free place to the lane that has been there longest and can use it. */
  #next(): void {
    for (const [name, lane] of this.#lanes) {
      if (this.#active >= this.#options.concurrency) return
      const entry = lane.busy ? undefined : lane.waiting.shift()
      if (entry === undefined) continue
      this.#take(lane)
      // To the back of the line, so that one app cannot keep the others waiting.
      this.#lanes.delete(name)
      this.#lanes.set(name, lane)
      entry.start()
    }
  }
}
