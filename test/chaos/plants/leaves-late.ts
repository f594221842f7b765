/** A bug on purpose: whether a write may still be sent is asked before it waits for the hub to show who it is. */
import { HubClient } from '../../../src/hub/client.ts'

const { call } = HubClient.prototype
HubClient.prototype.call = async function (name, parameters, mayLeave) {
  mayLeave?.()
  return await Reflect.apply(call, this, [name, parameters])
}
