/** Time as a dependency: the daemon gets the time and its timers from here, so that tests can control them. */
import { uptime } from 'node:os'

export interface Clock {
  /** Wall time in epoch milliseconds: for timestamps and expiry times that are exchanged with other programs. */
  now(): number
  /** Milliseconds from an arbitrary start that never jump: for durations, deadlines and ages. */
  elapsed(): number
  /**
   * Milliseconds since the machine started, including the time for which it was suspended, which `elapsed` may leave
   * out. Default: `elapsed` includes it. Costs a system call.
   */
  uptime?(): number
  /** Runs `task` once after `ms`. The returned function cancels it, and may also be called after it ran. */
  after(ms: number, task: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  uptime: () => uptime() * 1000,
  after(ms, task) {
    // Run overdue tasks at once; Node would log a warning.
    const timer = setTimeout(task, Math.max(0, ms))
    return () => clearTimeout(timer)
  },
}

/**
 * Returns the offset from `elapsed` to wall time. The offset changes only when it is off by a second or more, such as
 * after the clock was set, so that one moment has one timestamp.
 */
export function wallOffset(clock: Clock): () => number {
  let kept = Number.NaN
  return () => {
    const offset = Math.round(clock.now() - clock.elapsed())
    if (!(Math.abs(offset - kept) < 1000)) kept = offset
    return kept
  }
}

/** Resolves after `ms`, or at once when `signal` aborts. The caller checks the signal; nothing is thrown. */
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

/** Resolves with `event`, or with `undefined` after `ms`, or at once when `signal` aborts. */
export async function within<T>(
  clock: Clock,
  ms: number,
  event: Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const done = new AbortController()
  const late = sleep(clock, ms, signal === undefined ? done.signal : AbortSignal.any([done.signal, signal]))
  return await Promise.race([event, late.then(() => undefined)]).finally(() => done.abort())
}
