/** Planted bug: successful transactions are remembered forever. */
import { Replay } from '../../../src/bridge/replay.ts'
import type { Outcome } from '../../../src/contract/answer.ts'

const { recall, remember } = Replay.prototype
const done = new Map<string, Promise<Outcome>>()
Replay.prototype.remember = function (key, outcome, isWriteSent) {
  remember.call(this, key, outcome, isWriteSent)
  void outcome.then(({ ok }) => ok && done.set(key, outcome))
}
Replay.prototype.recall = function (key) {
  return recall.call(this, key) ?? done.get(key)
}
