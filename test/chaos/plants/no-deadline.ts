/** A bug on purpose: a command waits for its turn however long that takes, and whatever time its asker named. */
import { Execution } from '../../../src/bridge/execution.ts'
import { CommandQueue } from '../../../src/bridge/queue.ts'

const { run } = CommandQueue.prototype
const FOR_EVER = 2 ** 31 - 1
CommandQueue.prototype.run = function <T>(
  lane: string,
  _deadline: number,
  task: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  return Reflect.apply(run, this, [lane, FOR_EVER, task])
}

const { run: carryOut } = Execution.prototype
Execution.prototype.run = function (order) {
  return carryOut.call(this, { ...order, expiresAt: Number.POSITIVE_INFINITY })
}
