/** Planted bug: after an outage, a persistent session delivers the commands that were sent in the meantime. */
import { MqttClient } from 'mqtt'

const { connect } = MqttClient.prototype
MqttClient.prototype.connect = function () {
  Object.assign(this.options, { clean: false, properties: { sessionExpiryInterval: 300 } })
  return connect.call(this)
}
