/** Planted bug: events and answers share one queue, which always has the short limit of a disconnected bridge. */
import { MqttLink } from '../../../src/mqtt/link.ts'
import { Outbox } from '../../../src/mqtt/outbox.ts'

const { send } = MqttLink.prototype
MqttLink.prototype.send = function (topic, payload, options) {
  send.call(this, topic, payload, options && { ...options, isAnswer: false })
}

const { push } = Outbox.prototype
Outbox.prototype.push = function (...args) {
  this.connected = false
  push.apply(this, args)
}
