/** A bug on purpose: the same transaction again is a new command. */
import { Replay } from '../../../src/bridge/replay.ts'

Replay.prototype.recall = () => undefined
