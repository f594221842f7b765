/** Planted bug: a change that occurs during an unacknowledged publish counts as sent. */
import { Retained } from '../../../src/mqtt/retained.ts'

const { acked } = Retained.prototype
Retained.prototype.acked = function (entry) {
  entry.sent = entry.wanted
  acked.call(this, entry)
}
