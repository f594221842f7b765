/** Time as a dependency: the daemon asks this for the hour and for its timers, so a test can turn the hands. */
import { uptime } from 'node:os'

export interface Clock {
  /** Wall time in epoch milliseconds: for timestamps that others read and for expiry that others wrote. */
  now(): number
  /** Milliseconds from an arbitrary start that never jump: for durations, deadlines and ages. */
  elapsed(): number
  /**
   * Milliseconds for which the machine has been on, suspended or not, while `elapsed` may leave out the time for which it
   * was suspended; default: it leaves out none. Costs a system call.
   */
  uptime?(): number
  /** Runs `task` once after `ms`; the returned function cancels it, also after it ran. */
  after(ms: number, task: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  uptime: () => uptime() * 1000,
  after(ms, task) {
    // What is overdue runs at once; Node would say so with a warning.
    const timer = setTimeout(task, Math.max(0, ms))
    return () => clearTimeout(timer)
  },
}

/**
 * What is added to `elapsed` for the time that others read and write. Kept while the two differ by the same up to a
 * second, so that one moment has one time; a clock that is set is followed.
 */
export function wallOffset(clock: Clock): () => number {
  let kept = Number.NaN
  return () => {
    const offset = Math.round(clock.now() - clock.elapsed())
    if (!(Math.abs(offset - kept) < 1000)) kept = offset
    return kept
  }
}

/** Resolves after `ms`, or at once when `signal` aborts: the caller looks at the signal, nothing is thrown. */
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
