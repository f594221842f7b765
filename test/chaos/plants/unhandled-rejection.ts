/** Planted bug: a rejected promise is not handled. */
import { MqttLink } from '../../../src/mqtt/link.ts'

const { send } = MqttLink.prototype
let answers = 0
MqttLink.prototype.send = function (topic, payload, options) {
  if (options !== undefined) answers += 1
  if (options !== undefined && answers === 10) void Promise.reject(new Error('planted'))
  send.call(this, topic, payload, options)
}
