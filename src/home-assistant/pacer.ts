/** Limits the rate of work. The first tasks run immediately; no task is repeated too soon. */
import type { Clock } from '../base/clock.ts'

interface PacerOptions {
  readonly clock: Clock
  /** How many of the first tasks run without delay. */
  readonly atOnce: number
  /** How many later tasks run in one turn; other work runs between two turns. */
  readonly perTurn: number
  /** Time between two turns, in milliseconds. */
  readonly intervalMs: number
  /** How long to postpone the next turn, in milliseconds; default: not at all. */
  readonly busyMs?: () => number
  /** Minimum time before a task is repeated. */
  readonly restMs: number
  readonly task: (key: string) => void
}

export function newPacer(options: PacerOptions) {
  const { clock, perTurn, intervalMs, busyMs, restMs, task } = options
  /** Key → earliest time of its task, in the order of the requests. */
  const due = new Map<string, number>()
  /** Key → when its task last ran, oldest first; removed after `restMs`. */
  const done = new Map<string, number>()
  let { atOnce } = options
  let last = Number.NEGATIVE_INFINITY
  let wakeAt = Number.POSITIVE_INFINITY
  let cancelWake: (() => void) | undefined
  let stopped = false

  return {
    request,
    cancel: (key: string) => void due.delete(key),
    /** Makes all later tasks run at the limited rate. */
    slowDown(): void {
      atOnce = 0
    },
    stop(): void {
      stopped = true
      cancelWake?.()
      due.clear()
    },
  }

  /** Runs the task of `key` in its turn, after `delayMs` at the earliest. The earliest of several requests counts. */
  function request(key: string, delayMs = 0): void {
    const rested = (done.get(key) ?? Number.NEGATIVE_INFINITY) + restMs
    const at = Math.max(clock.elapsed() + delayMs, rested)
    due.set(key, Math.min(at, due.get(key) ?? Number.POSITIVE_INFINITY))
    wake(at)
  }

  function wake(wanted: number): void {
    const at = atOnce > 0 ? wanted : Math.max(wanted, last + intervalMs)
    if (stopped || at >= wakeAt) return
    cancelWake?.()
    wakeAt = at
    cancelWake = clock.after(Math.max(0, at - clock.elapsed()), tick)
  }

  function tick(): void {
    wakeAt = Number.POSITIVE_INFINITY
    const now = clock.elapsed()
    for (const [key, at] of done) {
      if (at + restMs > now) break
      done.delete(key)
    }
    const waitMs = busyMs?.() ?? 0
    if (waitMs > 0) return void wake(now + waitMs)
    let next = Number.POSITIVE_INFINITY
    let turns = Math.max(perTurn, atOnce)
    for (const [key, at] of due) {
      if (at > now) {
        next = Math.min(next, at)
        continue
      }
      if (turns === 0) {
        next = now
        break
      }
      turns -= 1
      atOnce = Math.max(0, atOnce - 1)
      due.delete(key)
      last = now
      // Move the key to the end, so that the oldest keys stay first.
      done.delete(key)
      done.set(key, now)
      task(key)
    }
    if (due.size > 0) wake(next)
  }
}
