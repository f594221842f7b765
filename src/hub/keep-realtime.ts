/** Keeps a realtime session up: the client library retries neither a refused login nor a disconnect by the server. */

import type { Logger } from 'pino'
import type { Backoff } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import { asHubError, retryDelay } from './errors.ts'
import type { RealtimeSession } from './realtime.ts'

/** A session that ends sooner was unsteady, and the next one has to wait longer. */
const STEADY_MS = 30_000

interface Keeping {
  /** @throws HubError */
  readonly open: () => Promise<RealtimeSession>
  /** A session is up; if this fails with a HubError, the session counts for nothing. */
  readonly onUp: () => Promise<void>
  /** A session that was up has ended. */
  readonly onLost: () => void
  readonly backoff: Backoff
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Opens one session after another, with the back-off between them, until the signal aborts. */
export async function keepRealtime({ open, onUp, onLost, backoff, clock, log, signal }: Keeping): Promise<void> {
  let loggedCode: string | undefined
  while (!signal.aborted) {
    let delay: number
    let session: RealtimeSession | undefined
    try {
      session = await open()
      const since = clock.elapsed()
      await onUp()
      if (!signal.aborted) log.info('realtime channel up')
      const reason = await session.ended
      if (clock.elapsed() - since >= STEADY_MS) backoff.reset()
      onLost()
      delay = backoff.next()
      loggedCode = undefined
      if (!signal.aborted) log.warn({ channel: reason }, 'realtime channel lost, polling instead')
    } catch (error) {
      const failure = asHubError(error)
      delay = retryDelay(failure, backoff)
      if (!signal.aborted && loggedCode !== failure.code)
        log.warn({ reason: failure.code }, `polling, as there is no realtime channel: ${failure.message}`)
      loggedCode = failure.code
    } finally {
      session?.close()
    }
    await sleep(clock, delay, signal)
  }
}
