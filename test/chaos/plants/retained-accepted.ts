/** A bug on purpose: a retained command is taken for a fresh one. */
import { Inbox } from '../../../src/mqtt/inbox.ts'

const { message } = Inbox.prototype
Inbox.prototype.message = function (...args) {
  const found = message.apply(this, args)
  return found && found.payload.length > 0 ? { ...found, retain: false } : found
}
