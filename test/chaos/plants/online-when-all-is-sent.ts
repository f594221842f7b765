/** Planted bug: `online` waits for all retained messages, including those that the broker never accepts. */
import { Retained } from '../../../src/mqtt/retained.ts'

const { settle } = Retained.prototype
Retained.prototype.settle = function (isReadBack) {
  // `awaiting` is a field of each instance, so an accessor on the prototype would have no effect.
  Object.defineProperty(this, 'awaiting', { get: () => this.waiting + this.blocked, set: () => {}, configurable: true })
  settle.call(this, isReadBack)
}
