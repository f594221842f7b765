/** A bug on purpose: of two bridges on one base topic, the younger acts too. */
import { Presence } from '../../../src/bridge/presence.ts'

Object.defineProperty(Presence.prototype, 'role', { get: () => 'active' })
