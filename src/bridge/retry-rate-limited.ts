/** A request that the hub puts off (429) was not carried out: it is sent again, a write too, while there is time. */
import { type Clock, sleep } from '../base/clock.ts'
import { HubError } from '../hub/errors.ts'

const PAUSES_MS = [1000, 2000, 4000]

export interface RateLimitRetry {
  readonly clock: Clock
  /** In `clock.elapsed()` milliseconds; nothing is sent again after it. */
  readonly deadline: number
  readonly signal: AbortSignal
  /** Throws if the request must not be sent any more. */
  readonly check: () => void
}

/** @throws HubError `rate_limited` if the hub puts it off to beyond the deadline */
export async function retryRateLimited<T>(request: () => Promise<T>, retry: RateLimitRetry): Promise<T> {
  const { clock, deadline, signal, check } = retry
  for (let tries = 0; ; tries += 1) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'rate_limited') throw error
      const pause = Math.max(error.retryAfterMs ?? 0, PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0)
      if (clock.elapsed() + pause >= deadline) throw error
      await sleep(clock, pause, signal)
      if (signal.aborted) throw error
      check()
    }
  }
}
