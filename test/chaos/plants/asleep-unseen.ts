/** Planted bug: after a suspension, waiting messages count as new. */
import { SuspendDetector } from '../../../src/mqtt/suspend-detector.ts'

SuspendDetector.prototype.arrivedAt = () => performance.now()
SuspendDetector.prototype.outdates = () => false
