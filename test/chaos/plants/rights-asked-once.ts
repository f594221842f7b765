/** A bug on purpose: what a command may do is decided when it comes in, however long it waits then. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Dispatcher } from '../../../src/bridge/dispatcher.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'
import { LiveConfig } from '../../../src/reload/live-config.ts'

const decided = new AsyncLocalStorage<LiveConfig['value']['commands']>()
const descriptor = Object.getOwnPropertyDescriptor(LiveConfig.prototype, 'value')
let current: LiveConfig['value']['commands'] | undefined
Object.defineProperty(LiveConfig.prototype, 'value', {
  get(this: LiveConfig) {
    const value: LiveConfig['value'] = descriptor?.get?.call(this)
    current = value.commands
    const commands = decided.getStore()
    return commands === undefined ? value : { ...value, commands }
  },
})

const { receive } = Dispatcher.prototype
Dispatcher.prototype.receive = function (message) {
  if (current === undefined) receive.call(this, message)
  else decided.run(current, () => receive.call(this, message))
}

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, { mayLeave, ...sending }) {
  const bound = mayLeave && AsyncLocalStorage.bind(mayLeave)
  return request.call(this, method, path, { ...sending, mayLeave: bound })
}
