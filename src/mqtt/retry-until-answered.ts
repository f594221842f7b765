/** Sends a request to a broker until it answers. */
import { setImmediate } from 'node:timers/promises'
import { type Clock, within } from '../base/clock.ts'

/** A broker with a full queue may also drop an answer, so the request is repeated. */
const REPEAT_MS = 500

interface RetryUntilAnswered {
  readonly clock: Clock
  readonly ask: () => void
  /** Settles when an answer arrives, or when none can arrive any more. */
  readonly answered: Promise<unknown>
  /** Whether to repeat the request. */
  readonly repeats: boolean
  /** When to give up, in `clock.elapsed()` milliseconds. May move while waiting. */
  readonly deadline: () => number
  /**
   * When the latest retained message arrived, on the same clock. Retained messages precede the answer: while they keep
   * arriving, the answer is not overdue, and another SUBSCRIBE would make the broker send all of them again.
   */
  readonly foundAt: () => number
  /** Whether something else proves that there was an answer; checked before each repetition. Default: never. */
  readonly isEvident?: () => boolean
  /** Aborted when the connection has ended. */
  readonly signal: AbortSignal
}

/** Resolves to the number of requests once one is answered or `isEvident`; `undefined` after giving up. */
export async function retryUntilAnswered(options: RetryUntilAnswered): Promise<number | undefined> {
  const { clock, answered, repeats, deadline, foundAt, isEvident, signal } = options
  let isAnswered = false
  void answered.then(() => {
    isAnswered = true
  })
  let asked = 0
  let askedAt = Number.NEGATIVE_INFINITY
  const againAt = () => (repeats ? Math.max(askedAt, foundAt()) + REPEAT_MS : Number.POSITIVE_INFINITY)
  while (!signal.aborted && clock.elapsed() < deadline()) {
    const now = clock.elapsed()
    if (asked === 0 || now >= againAt()) {
      if (asked > 0 && isEvident?.()) return asked
      asked += 1
      askedAt = now
      options.ask()
    }
    await within(clock, Math.min(deadline(), againAt()) - now, answered, signal)
    if (isAnswered) return asked
    // If the event loop is busy, the timer fires before the sockets are read.
    await setImmediate()
    await setImmediate()
    if (isAnswered) return asked
  }
  return undefined
}
