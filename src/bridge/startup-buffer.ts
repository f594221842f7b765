/** Runs tasks only while this bridge is active. Before its role is decided, tasks wait, most for a limited time. */
import type { Clock } from '../base/clock.ts'
import type { Role } from '../contract/schemas.ts'

const MAX_TASKS = 1_000
/** Equal to the maximum time for which events and answers wait for the broker. */
const MAX_MS = 60_000

export class StartupBuffer {
  /** `active` only while this bridge publishes and executes commands. */
  role: Role = 'undecided'
  /** Set when this bridge stops and another bridge executes all later commands. */
  isClosed = false
  readonly #clock: Clock
  #tasks: { readonly until: number; readonly keeps: boolean; readonly run: () => void }[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs a task when this bridge is active; drops the task if another bridge is active, or after `maxMs`. If too many
   * tasks wait, drops the oldest one without `keeps`.
   */
  run(task: () => void, maxMs = MAX_MS, keeps = false): void {
    if (this.isClosed || this.role === 'standby') return
    if (this.role === 'active') task()
    else this.#tasks.push({ until: this.#clock.elapsed() + maxMs, keeps, run: task })
    if (this.#tasks.length <= MAX_TASKS) return
    const oldest = this.#tasks.findIndex((waiting) => !waiting.keeps)
    this.#tasks.splice(Math.max(0, oldest), 1)
  }

  flush(): void {
    const now = this.#clock.elapsed()
    for (const { until, run } of this.#tasks.splice(0)) if (until >= now) run()
  }

  drop(): void {
    this.#tasks = []
  }
}
