/**
 * Changes the clocks of the bridge. `clockBy` sets only the wall clock, as NTP or a user might; `jumpBy` advances both
 * clocks and the timers.
 */
import { systemClock } from '../../../src/base/clock.ts'
import { JumpClock } from '../../support/jump-clock.ts'

const now = Date.now
let by = 0
Date.now = () => now() + by

const clock = new JumpClock()
Object.assign(systemClock, { now: clock.now, elapsed: clock.elapsed, after: clock.after })

process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null) return
  if ('clockBy' in message && typeof message.clockBy === 'number') by = message.clockBy
  if ('jumpBy' in message && typeof message.jumpBy === 'number') clock.jump(message.jumpBy)
})
// The listener must not keep the process alive.
process.channel?.unref()
