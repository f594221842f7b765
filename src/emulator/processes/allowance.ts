/** Limits a rate. A caller that has used up the amount for one second must wait for the next second. */
import type { Clock } from '../../base/clock.ts'

const SECOND_MS = 1000

export type Allowance = ReturnType<typeof allow>

/** @param refilled called at the start of the next second if the amount was used up */
export function allow(perSecond: number, clock: Clock, refilled: () => void) {
  let used = 0
  let since = clock.elapsed()
  let cancel: (() => void) | undefined
  const refill = (now: number) => {
    since = now
    used = 0
  }
  return {
    isExhausted: () => cancel !== undefined,
    use(amount: number): void {
      const now = clock.elapsed()
      if (now - since >= SECOND_MS) refill(now)
      used += amount
      if (used < perSecond || cancel !== undefined) return
      cancel = clock.after(since + SECOND_MS - now, () => {
        cancel = undefined
        refill(clock.elapsed())
        refilled()
      })
    },
    stop(): void {
      cancel?.()
      cancel = undefined
    },
  }
}
