/** What a command is carried out with. Its requests to the hub are guarded, and sent again where the hub puts them off. */
import { type Clock, sleep } from '../base/clock.ts'
import type { Target } from '../contract/target.ts'
import { HubError } from '../hub/errors.ts'
import { OPERATIONS } from '../hub/operations.ts'

const PAUSES_MS = [1000, 2000, 4000]

export interface RateLimitRetry {
  readonly clock: Clock
  /** In `clock.elapsed()` milliseconds; nothing is sent again after it. */
  readonly deadline: number
  readonly signal: AbortSignal
  /** Throws if the request must not be sent any more. */
  readonly check: () => void
}

export interface TargetOptions
  extends Omit<Target, 'call' | 'callEndpoint' | 'again'>,
    Pick<RateLimitRetry, 'deadline' | 'check'> {
  /** Called right before each write leaves; throws if it must not. */
  readonly beginWrite: () => void
}

export function createTarget({ deadline, check, beginWrite, ...rest }: TargetOptions): Target {
  const { hub, clock, signal } = rest
  const retry = { clock, deadline, signal, check }
  return {
    ...rest,
    again: (read) => retryRateLimited(read, retry),
    // Asked when the request leaves: until then it may wait for a connection, and for the hub to show who it is.
    call(name, parameters) {
      const mayLeave = OPERATIONS[name].method === 'GET' ? undefined : beginWrite
      return retryRateLimited(() => hub.call(name, parameters, mayLeave), retry)
    },
    callEndpoint(endpoint) {
      const mayLeave = endpoint.method === 'GET' ? undefined : beginWrite
      return retryRateLimited(() => hub.callEndpoint(endpoint, mayLeave), retry)
    },
  }
}

/**
 * A request that the hub puts off (429) was not carried out: it is sent again, a write too, while there is time.
 * @throws HubError `rate_limited` if the hub puts it off to beyond the deadline
 */
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
