/** A bug on purpose: what others retain where only messages are sent stays. */
import { Retained } from '../../../src/mqtt/retained.ts'

const { sweep } = Retained.prototype
Retained.prototype.sweep = function (owned) {
  return sweep.call(this, (topic, payload) => !/\/(event|presence|probe)$/.test(topic) && owned(topic, payload))
}
