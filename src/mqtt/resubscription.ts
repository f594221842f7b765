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

/** Asks for these until all are granted, or the connection ends. */
export async function resubscribe(
  connection: Pick<Connection, 'subscribe' | 'ended'>,
  denied: readonly string[],
  { clock, random, onGranted }: ResubscriptionOptions,
): Promise<void> {
  const { ended } = connection
  const backoff = new Backoff({ ...WAIT_MS, random })
  const left = new Set(denied)
  const askFor = async (filter: string) => {
    // Stays pending if the connection ends first.
    if (!(await connection.subscribe(filter, COMMAND)) || ended.aborted) return
    left.delete(filter)
    onGranted(filter)
  }
  while (left.size > 0) {
    await sleep(clock, backoff.next(), ended)
    if (ended.aborted) return
    // All at once: a cluster without a leader takes seconds to deny each.
    await Promise.all([...left].map(askFor))
  }
}
