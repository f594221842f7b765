/** A bug on purpose: a topic level counts for what it stands for, however it is spelled. */
import { encodeLevel } from '../../../src/contract/templates.ts'
import { MessageDecoder } from '../../../src/mqtt/message-decoder.ts'

const { message } = MessageDecoder.prototype
MessageDecoder.prototype.message = function (...args) {
  const found = message.apply(this, args)
  return found && { ...found, topic: found.topic.split('/').map(canonical).join('/') }
}

function canonical(level: string): string {
  try {
    return level === '%' ? level : encodeLevel(decodeURIComponent(level))
  } catch {
    return level
  }
}
