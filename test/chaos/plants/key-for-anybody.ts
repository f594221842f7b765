/** A bug on purpose: the key goes with the question whether a hub is there. */
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = function (method, path, sending) {
  return request.call(this, method, path, { ...sending, key: true })
}
