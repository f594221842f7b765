/** A bug on purpose: what has waited for a process that stood still is new. */
import { SuspendDetector } from '../../../src/mqtt/suspend-detector.ts'

SuspendDetector.prototype.arrivedAt = () => performance.now()
SuspendDetector.prototype.outdates = () => false
