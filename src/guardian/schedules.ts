/** Restarts at given times: one alarm per pattern of the configuration. */
import type { Clock } from '../base/clock.ts'
import { nextAfter } from '../base/cron.ts'
import type { GuardConfig } from './settings.ts'

/** The hour is looked at again then: a clock may have been set. */
const MAX_TIMER_MS = 60_000

export class Schedules {
  readonly #clock: Clock
  readonly #live: { readonly value: GuardConfig }
  readonly #onDue: (pattern: string) => void
  readonly #cancel = new Map<string, () => void>()

  constructor(clock: Clock, live: { readonly value: GuardConfig }, onDue: (pattern: string) => void) {
    this.#clock = clock
    this.#live = live
    this.#onDue = onDue
  }

  /** Sets the alarms that the configuration names. */
  set(): void {
    this.stop()
    for (const [pattern, cron] of this.#live.value.guard.schedule) this.#await(pattern, cron)
  }

  stop(): void {
    for (const cancel of this.#cancel.values()) cancel()
    this.#cancel.clear()
  }

  #await(pattern: string, cron: string, from = this.#clock.now()): void {
    const clock = this.#clock
    const at = nextAfter(cron, this.#live.value.guard.time_zone ?? undefined, from)
    if (at === undefined) return
    const cancel = clock.after(Math.min(at - clock.now(), MAX_TIMER_MS), () => {
      // One look at the clock: what is not due by then is awaited again, and not passed over.
      const now = clock.now()
      const isDue = now >= at
      this.#await(pattern, cron, isDue ? at : now)
      if (isDue) this.#onDue(pattern)
    })
    this.#cancel.set(pattern, cancel)
  }
}
