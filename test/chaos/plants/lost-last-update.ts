/** A bug on purpose: what changes while its predecessor is under way counts as sent. */
import { Retained } from '../../../src/mqtt/retained.ts'

const { acked } = Retained.prototype
Retained.prototype.acked = function (entry) {
  entry.sent = entry.wanted
  acked.call(this, entry)
}
