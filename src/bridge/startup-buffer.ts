/** Runs tasks only while this bridge is active. Before its role is decided, tasks wait, most for a limited time. */
import type { Clock } from '../base/clock.ts'
import { MAX_PAYLOAD_BYTES } from '../contract/payload.ts'
import type { Role } from '../contract/schemas.ts'
import type { MqttLink } from '../mqtt/link.ts'
import type { Message } from '../mqtt/types.ts'

const MAX_TASKS = 1_000
/** Equal to the maximum time for which events and answers wait for the broker. */
const MAX_MS = 60_000

interface Task {
  readonly until: number
  readonly keeps: boolean
  readonly run: () => void
}

export class StartupBuffer {
  /** `active` only while this bridge publishes and executes commands. */
  role: Role = 'undecided'
  /** Set when this bridge stops and another bridge executes all later commands. */
  isClosed = false
  readonly #clock: Clock
  readonly #link: Pick<MqttLink, 'dropped'>
  #tasks: Task[] = []

  constructor(clock: Clock, link: Pick<MqttLink, 'dropped'>) {
    this.#clock = clock
    this.#link = link
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
    for (const task of this.#tasks.splice(Math.max(0, oldest), 1)) this.#dropped(task)
  }

  /** Keeps a late command too: it is refused, not dropped, because it needs an answer and, if retained, must be cleared. */
  keep(message: Message, dispatcher: { receive(message: Message): void }): void {
    // Copy the payload, because a view would keep the whole network buffer in memory. A cut payload is still too long.
    const payload = Buffer.from(message.payload.subarray(0, MAX_PAYLOAD_BYTES + 1))
    this.run(() => dispatcher.receive({ ...message, payload }), Number.POSITIVE_INFINITY, message.retain)
  }

  flush(): void {
    const now = this.#clock.elapsed()
    for (const task of this.#tasks.splice(0))
      if (task.until >= now) task.run()
      else this.#dropped(task)
  }

  /** Drops all tasks, because another bridge publishes these events and has executed these commands. */
  drop(): void {
    this.#tasks = []
  }

  /** Only commands wait without a time limit. */
  #dropped({ until }: Task): void {
    this.#link.dropped(until === Number.POSITIVE_INFINITY ? 'commands' : 'events')
  }
}
