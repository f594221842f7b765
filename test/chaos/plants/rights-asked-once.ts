/** Planted bug: permissions are checked only when a command arrives, not after the command has waited. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Dispatcher } from '../../../src/bridge/dispatcher.ts'
import { LiveConfig } from '../../../src/config/live-config.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

const decided = new AsyncLocalStorage<LiveConfig['value']['commands']>()
let current: LiveConfig['value']['commands'] | undefined

const { start } = LiveConfig.prototype
LiveConfig.prototype.start = function (onReload) {
  let { value } = this
  Object.defineProperty(this, 'value', {
    get() {
      current = value.commands
      const commands = decided.getStore()
      return commands === undefined ? value : { ...value, commands }
    },
    set(next: LiveConfig['value']) {
      value = next
    },
  })
  start.call(this, onReload)
}

const { receive } = Dispatcher.prototype
Dispatcher.prototype.receive = function (message, requester) {
  if (current === undefined) receive.call(this, message, requester)
  else decided.run(current, () => receive.call(this, message, requester))
}

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, { mayLeave, ...sending }) {
  const bound = mayLeave && AsyncLocalStorage.bind(mayLeave)
  return request.call(this, method, path, { ...sending, mayLeave: bound })
}
