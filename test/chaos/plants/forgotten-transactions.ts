/** Planted bug: a repeated transaction counts as a new command. */
import { Replay } from '../../../src/bridge/replay.ts'

Replay.prototype.recall = () => undefined
