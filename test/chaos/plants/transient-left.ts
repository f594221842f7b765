/** Planted bug: retained messages from other clients on event topics are not swept. */
import { Retained } from '../../../src/mqtt/retained.ts'

const { sweep } = Retained.prototype
Retained.prototype.sweep = function (owned) {
  return sweep.call(this, (topic, payload) => !/\/(event|presence|probe)$/.test(topic) && owned(topic, payload))
}
