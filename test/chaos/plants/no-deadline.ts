/** A bug on purpose: a command waits for its turn however long that takes, and whatever time its asker named. */
import { Limiter, type Slot, type Turn } from '../../../src/base/limiter.ts'
import { Execution } from '../../../src/bridge/execution.ts'

const { run } = Limiter.prototype
const FOR_EVER = 2 ** 31 - 1
Limiter.prototype.run = function <T>(turn: Turn, work: (slot: Slot) => Promise<T>): Promise<T> {
  return Reflect.apply(run, this, [{ ...turn, deadline: FOR_EVER }, work])
}

const { run: carryOut } = Execution.prototype
Execution.prototype.run = function (order) {
  return carryOut.call(this, { ...order, expiresAt: Number.POSITIVE_INFINITY })
}
