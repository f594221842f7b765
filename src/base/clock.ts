/** Provides the time as a dependency, so that tests can control it. */
import { uptime } from 'node:os'

export interface Clock {
  /** Wall time in epoch milliseconds, for times that are exchanged with other programs. */
  now(): number
  /** Monotonic milliseconds since an arbitrary start, for durations, deadlines and ages. */
  elapsed(): number
  /**
   * Milliseconds since the machine started, including the time when it was suspended. A clock whose `elapsed` also
   * includes this time does not need this method. Each call is a system call.
   */
  uptime?(): number
  /** Runs `task` once after `ms`. The returned function cancels the task, if it has not run yet. */
  after(ms: number, task: () => void): () => void
}

/** Node.js runs the task of a longer timer immediately, so a longer time needs several timers. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  uptime: () => uptime() * 1000,
  after(ms, task) {
    let timer: NodeJS.Timeout
    const wait = (rest: number) => {
      const next = rest > MAX_TIMER_MS ? () => wait(rest - MAX_TIMER_MS) : task
      // Node.js logs a warning for a negative delay.
      timer = setTimeout(next, Math.min(Math.max(0, rest), MAX_TIMER_MS))
    }
    wait(ms)
    return () => clearTimeout(timer)
  },
}

/**
 * Returns the offset from `elapsed` to wall time. Ignores changes of less than a second, so that the same moment always
 * has the same timestamp unless the clock is changed.
 */
export function wallOffset(clock: Clock): () => number {
  let current = Number.NaN
  return () => {
    const offset = Math.round(clock.now() - clock.elapsed())
    if (!(Math.abs(offset - current) < 1000)) current = offset
    return current
  }
}

/** Resolves after `ms`, or as soon as `signal` aborts. Never rejects, so the caller must check the signal. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const wake = () => {
      cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(ms, wake)
    signal?.addEventListener('abort', wake)
  })
}

/** Resolves to the value of `event`, or to `undefined` after `ms` or as soon as `signal` aborts. */
export async function within<T>(
  clock: Clock,
  ms: number,
  event: Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const done = new AbortController()
  const late = sleep(clock, ms, signal === undefined ? done.signal : AbortSignal.any([done.signal, signal]))
  // Without a reason, Node.js would create an error with a stack trace.
  return await Promise.race([event, late.then(() => undefined)]).finally(() => done.abort(null))
}
