/** Planted bug: every seventh answer is lost. */
import { MqttLink } from '../../../src/mqtt/link.ts'

const { send } = MqttLink.prototype
let answers = 0
MqttLink.prototype.send = function (topic, payload, options) {
  if (options !== undefined) answers += 1
  if (options === undefined || answers % 7 !== 0) send.call(this, topic, payload, options)
}
