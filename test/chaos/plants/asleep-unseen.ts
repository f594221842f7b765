/** A bug on purpose: what has waited for a process that stood still is new. */
import { Standstill } from '../../../src/mqtt/standstill.ts'

Standstill.prototype.arrivedAt = () => performance.now()
Standstill.prototype.outdates = () => false
