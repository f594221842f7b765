/**
 * Runs tasks only while this bridge is the active one. While it is unknown whether another bridge is active, a limited
 * number of tasks waits for a limited time.
 */
import type { Clock } from '../base/clock.ts'
import type { Role } from '../contract/schemas.ts'

const MAX_TASKS = 1_000
/** Maximum wait, the same as that of events and answers for the broker. */
const MAX_MS = 60_000

export class StartupBuffer {
  /** The role that is in effect: `active` only while this bridge publishes and executes. */
  role: Role = 'undecided'
  /** Whether this bridge is stopping and another bridge executes all later commands. */
  hasLeft = false
  readonly #clock: Clock
  #tasks: { readonly at: number; readonly run: () => void }[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * A new connection begins. Tasks wait until it is known whether another bridge has become active in the meantime.
   * @param isSure whether no other bridge can be active, because this bridge ended the last connection on purpose
   */
  pause(isSure: boolean): void {
    if (this.role === 'active' && !isSure) this.role = 'undecided'
  }

  /** Runs a task now or when this bridge becomes active; drops it if another bridge is active. */
  run(task: () => void): void {
    if (this.hasLeft || this.role === 'standby') return
    if (this.role === 'active') task()
    else this.#tasks.push({ at: this.#clock.elapsed(), run: task })
    if (this.#tasks.length > MAX_TASKS) this.#tasks.shift()
  }

  /** Runs the tasks that have not waited too long. */
  flush(): void {
    const oldest = this.#clock.elapsed() - MAX_MS
    for (const { at, run } of this.#tasks.splice(0)) if (at >= oldest) run()
  }

  drop(): void {
    this.#tasks = []
  }
}
