/** Planted bug: after a suspension of the bridge, commands that were waiting count as new. */
import { SuspendDetector } from '../../../src/mqtt/suspend-detector.ts'

SuspendDetector.prototype.arrivedAt = () => performance.now()
SuspendDetector.prototype.outdates = () => false
