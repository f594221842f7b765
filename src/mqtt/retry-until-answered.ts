/** Sends a request to a broker until it answers. */
import { setImmediate } from 'node:timers/promises'
import { type Clock, sleep } from '../base/clock.ts'

/** A broker whose queue is full may drop an answer, too. So it is asked again until one comes. */
const REPEAT_MS = 500

interface RetryUntilAnswered {
  readonly clock: Clock
  readonly ask: () => void
  /** Settled when there is an answer, or will be none. */
  readonly answered: Promise<unknown>
  /** Whether to ask again while nothing comes. */
  readonly repeats: boolean
  /** When to give up, in `clock.elapsed()` milliseconds; it may be put off. */
  readonly deadline: () => number
  /**
   * When the latest retained message arrived, in the same time. They come before the answer: while they arrive it is not
   * overdue, and another SUBSCRIBE would make the broker send all of them again.
   */
  readonly foundAt: () => number
  /** Whether something else shows that there was an answer; looked at before asking again. Default: nothing does. */
  readonly isEvident?: () => boolean
  /** Aborted when the connection has ended. */
  readonly signal: AbortSignal
}

/** Returns how often it has asked when that is settled or evident; `undefined`: it has given up. */
export async function retryUntilAnswered(question: RetryUntilAnswered): Promise<number | undefined> {
  const { clock, answered, repeats, deadline, foundAt, isEvident, signal } = question
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
      question.ask()
    }
    await within(clock, Math.min(deadline(), againAt()) - now, answered, signal)
    if (isAnswered) return asked
    // When the event loop is busy, the timer fires before the sockets are read.
    await setImmediate()
    await setImmediate()
    if (isAnswered) return asked
  }
  return undefined
}

async function within(clock: Clock, ms: number, event: Promise<unknown>, ended: AbortSignal): Promise<void> {
  const done = new AbortController()
  await Promise.race([event, sleep(clock, ms, AbortSignal.any([done.signal, ended]))])
  done.abort()
}
