/** A bug on purpose: whatever looks like a hub's below the base topic, and is none's that is configured, is swept. */
import { FormerHubs } from '../../../src/bridge/former.ts'

FormerHubs.prototype.has = () => true
