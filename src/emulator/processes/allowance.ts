/** Limits a rate. A caller that has used up the amount for one second must wait for the next second. */
import type { Clock } from '../../base/clock.ts'

const SECOND_MS = 1000

export type Allowance = ReturnType<typeof allow>

/** @param refilled called at the end of each second in which something was used */
export function allow(perSecond: number, clock: Clock, refilled: () => void) {
  let used = 0
  let cancel: (() => void) | undefined
  function stop(): void {
    cancel?.()
    cancel = undefined
    used = 0
  }
  return {
    stop,
    isExhausted: () => used >= perSecond,
    use(amount: number): void {
      used += amount
      cancel ??= clock.after(SECOND_MS, () => {
        stop()
        refilled()
      })
    },
  }
}
