/** Planted bug: a command has no deadline and no expiry. */
import { Limiter, type Slot, type Turn } from '../../../src/base/limiter.ts'
import { Dispatcher } from '../../../src/bridge/dispatcher.ts'
import { COMMANDS } from '../../../src/contract/commands.ts'

const { run } = Limiter.prototype
const FOR_EVER = 2 ** 31 - 1
Limiter.prototype.run = function <T>(turn: Turn, work: (slot: Slot) => Promise<T>): Promise<T> {
  return Reflect.apply(run, this, [{ ...turn, deadline: FOR_EVER }, work])
}

const { receive } = Dispatcher.prototype
Dispatcher.prototype.receive = function ({ expiresInMs: _, ...message }, requester) {
  receive.call(this, message, requester)
}
for (const { payload } of COMMANDS) {
  const { read } = payload
  Object.assign(payload, { read: (text: string) => ({ ...read(text), expiresAt: null }) })
}
