/**
 * Makes the bridge reconnect immediately. Its back-off grows with frequent cuts, so that a thousand cuts would last for
 * hours, but does not affect its memory use.
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
