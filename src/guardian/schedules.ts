/** Calls tasks at times that configuration names, by the system clock. */
import type { Clock } from '../base/clock.ts'
import { nextAfter } from '../base/cron.ts'

export interface Schedule {
  readonly cron: string
  readonly timeZone: string | null
  /** After so many milliseconds the clock is checked again: it may have been set. */
  readonly checkMs: number
  readonly task: () => void
}

export class Schedules {
  readonly #clock: Clock
  readonly #cancel = new Map<Schedule, () => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Replaces what is scheduled. */
  set(schedules: readonly Schedule[]): void {
    for (const cancel of this.#cancel.values()) cancel()
    this.#cancel.clear()
    for (const schedule of schedules) this.#await(schedule)
  }

  #await(schedule: Schedule, from = this.#clock.now()): void {
    const clock = this.#clock
    const at = nextAfter(schedule.cron, schedule.timeZone ?? undefined, from)
    if (at === undefined) return
    const cancel = clock.after(Math.min(at - clock.now(), schedule.checkMs), () => {
      // One look at the clock: what is not due by then is awaited again, and not passed over.
      const now = clock.now()
      const isDue = now >= at
      this.#await(schedule, isDue ? at : now)
      if (isDue) schedule.task()
    })
    this.#cancel.set(schedule, cancel)
  }
}
