/** A bug on purpose: a retained command is taken for a fresh one. */
import { MessageDecoder } from '../../../src/mqtt/message-decoder.ts'

const { message } = MessageDecoder.prototype
MessageDecoder.prototype.message = function (...args) {
  const found = message.apply(this, args)
  return found && found.payload.length > 0 ? { ...found, retain: false } : found
}
