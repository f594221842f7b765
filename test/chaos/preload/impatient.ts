/**
 * Makes the bridge reconnect immediately. The back-off does not affect the memory use, but grows with frequent cuts.
 * With it, a thousand cuts would take hours.
 */
import { Backoff } from '../../../src/base/backoff.ts'
import { Pacing } from '../../../src/mqtt/addresses.ts'

const { after } = Pacing.prototype
Pacing.prototype.after = function (...args) {
  return Math.min(200, after.apply(this, args))
}

const { next } = Backoff.prototype
Backoff.prototype.next = function () {
  return Math.min(200, next.call(this))
}
