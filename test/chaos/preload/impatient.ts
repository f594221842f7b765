/**
 * Loaded into the bridge for a soak: reconnects immediately. The bridge's own back-off, which grows if connections are
 * cut every few seconds, would make a thousand cuts last for hours; the memory that it uses is the same.
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
