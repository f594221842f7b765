/** Calls tasks at configured times, by the system clock. */
import type { Clock } from '../base/clock.ts'
import { nextAfter } from '../base/cron.ts'

export interface Schedule {
  readonly cron: string
  readonly timeZone: string | null
  /** Milliseconds after which the clock is checked again, because it may have been set. */
  readonly checkMs: number
  readonly task: () => void
}

export class Schedules {
  readonly #clock: Clock
  readonly #cancel = new Map<Schedule, () => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Replaces all schedules. */
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
      // Read the clock only once: a task that is not due by then is scheduled again, not skipped.
      const now = clock.now()
      const isDue = now >= at
      this.#await(schedule, isDue ? at : now)
      if (isDue) schedule.task()
    })
    this.#cancel.set(schedule, cancel)
  }
}
