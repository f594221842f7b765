/** Restarts at given times: one alarm per pattern of the configuration. */
import type { Clock } from '../base/clock.ts'
import { nextAfter } from '../base/cron.ts'
import type { GuardConfig } from './settings.ts'

/** The hour is looked at again then: a clock may have been set. */
const MAX_TIMER_MS = 60_000

export interface SchedulesOptions {
  readonly clock: Clock
  readonly config: () => GuardConfig
  readonly onDue: (pattern: string) => void
}

export class Schedules {
  readonly #options: SchedulesOptions
  #cancel: (() => void)[] = []

  constructor(options: SchedulesOptions) {
    this.#options = options
  }

  /** Sets the alarms as configuration says by now. */
  set(): void {
    this.stop()
    for (const [pattern, cron] of this.#options.config().guard.schedule) {
      const slot = this.#cancel.push(() => {}) - 1
      this.#await(slot, pattern, cron)
    }
  }

  stop(): void {
    for (const cancel of this.#cancel) cancel()
    this.#cancel = []
  }

  #await(slot: number, pattern: string, cron: string, from = this.#options.clock.now()): void {
    const { clock, config, onDue } = this.#options
    const at = nextAfter(cron, config().guard.time_zone ?? undefined, from)
    if (at === undefined) return
    this.#cancel[slot] = clock.after(Math.min(at - clock.now(), MAX_TIMER_MS), () => {
      // One look at the clock: what is not due by then is awaited again, and not passed over.
      const now = clock.now()
      const isDue = now >= at
      this.#await(slot, pattern, cron, isDue ? at : now)
      if (isDue) onDue(pattern)
    })
  }
}
