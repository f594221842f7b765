/** Planted bug: both bridges with the same base topic are active. */
import { Presence } from '../../../src/bridge/presence.ts'

Object.defineProperty(Presence.prototype, 'role', { get: () => 'active' })
