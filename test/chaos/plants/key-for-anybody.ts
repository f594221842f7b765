/** A bug on purpose: the key goes with the question whether a hub is there. */
import { Rest } from '../../../src/hub/rest.ts'

const { request } = Rest.prototype
Rest.prototype.request = function (method, path, sending) {
  return request.call(this, method, path, { ...sending, key: true })
}
