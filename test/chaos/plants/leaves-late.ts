/** Planted bug: the expiry of a write is checked only before the write waits for the hub's identity. */
import { HubClient } from '../../../src/hub/client.ts'

const { call } = HubClient.prototype
HubClient.prototype.call = async function (name, parameters, mayLeave) {
  mayLeave?.()
  return await Reflect.apply(call, this, [name, parameters])
}
