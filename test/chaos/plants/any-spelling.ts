/** Planted bug: accepts every spelling of an encoded topic level. */
import { encodeLevel } from '../../../src/contract/templates.ts'
import { InboundQueue } from '../../../src/mqtt/inbound.ts'

const { take } = InboundQueue.prototype
InboundQueue.prototype.take = function (message) {
  return take.call(this, { ...message, topic: message.topic.split('/').map(canonical).join('/') })
}

function canonical(level: string): string {
  try {
    return level === '%' ? level : encodeLevel(decodeURIComponent(level))
  } catch {
    return level
  }
}
