/**
 * Asks again for subscriptions that the broker has denied. A cluster that has just lost a node denies for a while what it
 * grants later, and rules may change while a connection lasts.
 */
import { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import { COMMAND } from './session-setup.ts'

const WAIT_MS = { min: 1_000, max: 5 * 60_000 }

export interface ResubscriptionOptions {
  readonly clock: Clock
  readonly random: () => number
  /** A filter that was denied before. */
  readonly onGranted: (filter: string) => void
}

export class Resubscription {
  readonly #options: ResubscriptionOptions
  #stop = new AbortController()

  constructor(options: ResubscriptionOptions) {
    this.#options = options
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
    const { clock, random, onGranted } = this.#options
    const backoff = new Backoff({ ...WAIT_MS, random })
    const left = new Set(denied)
    const askFor = async (filter: string) => {
      // Stays pending if the connection ends first.
      if (!(await connection.subscribe(filter, COMMAND)) || signal.aborted) return
      left.delete(filter)
      onGranted(filter)
    }
    while (left.size > 0) {
      await sleep(clock, backoff.next(), signal)
      if (signal.aborted) return
      // All at once: a cluster without a leader takes seconds to deny each.
      await Promise.all([...left].map(askFor))
    }
  }
}
