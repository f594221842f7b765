/** Planted bug: a retained command is executed. */
import { InboundQueue } from '../../../src/mqtt/inbound.ts'

const { take } = InboundQueue.prototype
InboundQueue.prototype.take = function (message) {
  return take.call(this, message.payload.length > 0 ? { ...message, retain: false } : message)
}
