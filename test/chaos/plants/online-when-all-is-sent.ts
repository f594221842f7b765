/** A bug on purpose: `online` waits for every retained message, those too that the broker never takes. */
import { Retained } from '../../../src/mqtt/retained.ts'

Object.defineProperty(Retained.prototype, 'awaiting', {
  get(this: Retained) {
    return this.waiting + this.blocked
  },
})
