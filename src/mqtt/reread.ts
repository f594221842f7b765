/** Reads back again, in the middle of a connection: with a proof that all which the broker had for it has come. */
import type { Clock } from '../base/clock.ts'
import type { Connection } from './connection.ts'
import { ReadBack, type ReadBackOptions } from './readback.ts'
import { COMMAND, PROBE } from './session-setup.ts'
import type { LinkOptions } from './types.ts'

/** How long the proof may take. */
const PROOF_MS = 10_000

/**
 * Lets the broker send what is retained under these filters. Where the probe is `ok`, what the broker had before has been
 * received. `publish` sends on the probe topic, in turn with everything else that is sent.
 */
export function reread(
  connection: Connection,
  heldFilters: readonly string[],
  { probeTopic, subscriptions }: LinkOptions,
  { clock, publish }: { readonly clock: Clock; readonly publish: ReadBackOptions['publish'] },
): ReadBack {
  return new ReadBack(connection, {
    heldFilters,
    lastingFilters: subscriptions,
    probeTopic,
    clock,
    timeoutMs: PROOF_MS,
    subscribe: (filter, qos) =>
      connection.subscribe(filter, filter === probeTopic ? PROBE : subscriptions.includes(filter) ? COMMAND : { qos }),
    publish,
  })
}
