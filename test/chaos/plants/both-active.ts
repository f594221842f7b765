/** Planted bug: both bridges on a base topic are active. */
import { Presence } from '../../../src/bridge/presence.ts'

Object.defineProperty(Presence.prototype, 'role', { get: () => 'active' })
