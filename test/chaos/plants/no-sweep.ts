/** Planted bug: unowned messages are never swept. */
import { MqttLink } from '../../../src/mqtt/link.ts'

MqttLink.prototype.sweep = () => 0
