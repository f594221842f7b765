/** Planted bug: the sweep clears all topics that look like those of a hub, even if that hub is not configured. */
import { FormerHubs } from '../../../src/bridge/former.ts'

FormerHubs.prototype.has = () => true
