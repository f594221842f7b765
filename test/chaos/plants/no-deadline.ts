/** A bug on purpose: a command waits for its turn however long that takes, and whatever time its requester named. */
import { Dispatcher } from '../../../src/bridge/dispatcher.ts'
import { CommandQueue } from '../../../src/bridge/queue.ts'
import { COMMANDS } from '../../../src/contract/commands.ts'

const { run } = CommandQueue.prototype
const FOR_EVER = 2 ** 31 - 1
CommandQueue.prototype.run = function <T>(
  lane: string,
  _deadline: number,
  task: (isLate: () => boolean) => Promise<T>,
): Promise<T> {
  return Reflect.apply(run, this, [lane, FOR_EVER, task])
}

const { receive } = Dispatcher.prototype
Dispatcher.prototype.receive = function ({ expiresInMs: _, ...message }, requester) {
  receive.call(this, message, requester)
}
for (const { payload } of COMMANDS) {
  const { read } = payload
  Object.assign(payload, { read: (text: string) => ({ ...read(text), expiresAt: null }) })
}
