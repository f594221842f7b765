/** Planted bug: after an outage, all states of an app during the outage are sent, not only the newest one. */
import { MqttLink } from '../../../src/mqtt/link.ts'
import { Sender } from '../../../src/mqtt/sender.ts'

const backlog: { topic: string; payload: string }[] = []
const { hold } = MqttLink.prototype
MqttLink.prototype.hold = function (topic, payload) {
  if (this.status().state !== 'connected') backlog.push({ topic, payload: payload ?? '' })
  return hold.call(this, topic, payload)
}
const { attach } = Sender.prototype
Sender.prototype.attach = function (connection) {
  for (const { topic, payload } of backlog.splice(0)) {
    connection.publish(topic, payload, { qos: 1, retain: true }, () => undefined)
  }
  attach.call(this, connection)
}
