/** Planted bug: a persistent session delivers the commands of an outage. */
import { MqttClient } from 'mqtt'

const { connect } = MqttClient.prototype
MqttClient.prototype.connect = function () {
  Object.assign(this.options, { clean: false, properties: { sessionExpiryInterval: 300 } })
  return connect.call(this)
}
