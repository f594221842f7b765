/**
 * Asks again for subscriptions that the broker has denied. A cluster that has just lost a node denies for a while what it
 * grants later, and rules may change while a connection lasts.
 */
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import { COMMAND } from './session-setup.ts'

const WAIT_MS = { min: 1_000, max: 5 * 60_000 }

export class Resubscription {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #onGranted: (filter: string) => void
  #stop = new AbortController()

  /** @param onGranted gets a filter that was denied before */
  constructor(clock: Clock, random: () => number, onGranted: (filter: string) => void) {
    this.#clock = clock
    this.#random = random
    this.#onGranted = onGranted
  }

  /** Asks for these until all are granted, or until `stop`. */
  start(connection: Pick<Connection, 'subscribe'>, denied: readonly string[]): void {
    this.stop()
    this.#stop = new AbortController()
    if (denied.length > 0) void this.#run(connection, denied, this.#stop.signal)
  }

  /** The connection has ended. */
  stop(): void {
    this.#stop.abort()
  }

  async #run(connection: Pick<Connection, 'subscribe'>, denied: readonly string[], signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ ...WAIT_MS, random: this.#random })
    const left = new Set(denied)
    const askFor = async (filter: string) => {
      // Stays pending if the connection ends first.
      if (!(await connection.subscribe(filter, COMMAND)) || signal.aborted) return
      left.delete(filter)
      this.#onGranted(filter)
    }
    while (left.size > 0) {
      await sleep(this.#clock, backoff.next(), signal)
      if (signal.aborted) return
      // All at once: a cluster without a leader takes seconds to deny each.
      await Promise.all([...left].map(askFor))
    }
  }
}
